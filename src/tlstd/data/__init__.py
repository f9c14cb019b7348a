"""The data that estimators learn from: vectors and transitions, and the forms in which kernels take them.

Example
-------
>>> from tlstd.data import SparseVector, TransitionBuilder
>>> SparseVector([3, 1], [1.0, 0.5], size=8)
SparseVector(nnz=2, size=8)
"""

from tlstd.core.arrays import MAX_MAGNITUDE, FloatArray, IntArray, Matrix, as_matrix
from tlstd.data.transitions import Transition, TransitionBuilder, Transitions, trace_discounts
from tlstd.data.vectors import SparseVector, Vector, VectorLike, as_vector

__all__ = [
    "MAX_MAGNITUDE",
    "FloatArray",
    "IntArray",
    "Matrix",
    "SparseVector",
    "Transition",
    "TransitionBuilder",
    "Transitions",
    "Vector",
    "VectorLike",
    "as_matrix",
    "as_vector",
    "trace_discounts",
]
