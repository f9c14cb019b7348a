"""The numbers and figures of ``docs/theorem.md``, from runs of the question :mod:`tlstd_lab.questions.theorem`."""
