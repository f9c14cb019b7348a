"""Measurements behind pages of the documentation, each made by ``python -m``."""
