"""Estimators to compare with, one file each; what several share stands beside them."""
