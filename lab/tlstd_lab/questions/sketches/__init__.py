"""Beyond the paper: subspaces by chance and by the data, and sketches on one side, after Pan et al. (2017)."""

from tlstd_lab.question import Question

QUESTION = Question(panels={"sketches-car-tiles": "panel:CarTiles", "sketches-car-rbf": "panel:CarRBF"})
