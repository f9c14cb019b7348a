"""Stored results as one HTML page: ``tlstd report``."""
