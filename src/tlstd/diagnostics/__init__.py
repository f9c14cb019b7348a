"""What a system A w = b says about truncation: its spectrum, the discrete Picard condition, the theorem's bound.

``docs/experiments.md`` tells what of the paper's theorem holds, and what the bound is good for.

Example
-------
>>> import numpy as np
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
>>> A_t, b_t = A + 1e-3, b + 1e-3
>>> result = bound(A, b, A_t, b_t, 5, constant=None)
>>> result.error <= result.norm.total, result.error <= result.corrected.total
(True, True)
"""

from tlstd.diagnostics.bounds import Bound, Comparison, Corrected, Reading, bound, compare
from tlstd.diagnostics.picard_condition import Exponents, Picard, Trend, picard, plot_picard
from tlstd.diagnostics.proof import Step, proof_steps
from tlstd.diagnostics.singular_values import effective_rank, spectrum

__all__ = [
    "Bound",
    "Comparison",
    "Corrected",
    "Exponents",
    "Picard",
    "Reading",
    "Step",
    "Trend",
    "bound",
    "compare",
    "effective_rank",
    "picard",
    "plot_picard",
    "proof_steps",
    "spectrum",
]
