"""The page of an evaluation."""
