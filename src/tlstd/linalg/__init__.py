"""The mathematics: low-rank factors under block updates, and their reference implementation."""
