"""Krylov LSTD: stored samples as an operator, Krylov spaces of it, and the choice of their dimension."""
