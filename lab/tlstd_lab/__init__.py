"""The laboratory of tlstd: the reproduction of the paper, the benchmark and the report."""
