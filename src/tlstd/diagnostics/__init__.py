"""What a system A w = b says about truncation: its spectrum and the discrete Picard condition.

Example
-------
>>> from tlstd import boyan_chain
>>> A, b = boyan_chain(25).system(0.0)
>>> sigma = spectrum(A)
>>> sigma.size, effective_rank(sigma)
(7, 6)
>>> condition = picard(A, b)
>>> condition.exponents().empty  # the weights go down to −48: too large for the condition as stated
True
>>> round(condition.constant(1.5))
668
"""

from tlstd.diagnostics.picard_condition import Exponents, Picard, Trend, picard, plot_picard
from tlstd.diagnostics.singular_values import effective_rank, spectrum

__all__ = ["Exponents", "Picard", "Trend", "effective_rank", "picard", "plot_picard", "spectrum"]
