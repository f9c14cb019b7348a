"""An answer as one page: a file of HTML that runs no script and loads nothing.

Example
-------
>>> import numpy as np
>>> from tlstd import evaluate
>>> log = {"episode": np.repeat(np.arange(20), 5), "obs": np.tile(np.arange(5), 20), "reward": np.ones(100)}
>>> page = render(evaluate(log, gamma=0.5))
>>> page[:15], "<script" in page
('<!doctype html>', False)
"""

from tlstd.page.page import render, write_page

__all__ = ["render", "write_page"]
