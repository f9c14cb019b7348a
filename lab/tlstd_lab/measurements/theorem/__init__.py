"""The numbers and figures of ``docs/experiments.md``, from runs of the question :mod:`tlstd_lab.questions.theorem`."""
