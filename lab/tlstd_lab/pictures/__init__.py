"""Pictures of the documentation, each made by ``python -m``."""
