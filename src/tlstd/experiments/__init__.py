"""Experiments: one file per figure, with its settings, its run and its drawing."""
