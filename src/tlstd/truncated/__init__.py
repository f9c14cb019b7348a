"""t-LSTD: the algorithms of the paper, and the truncated system that they keep."""
