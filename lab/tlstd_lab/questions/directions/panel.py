"""Beyond the paper: how much of a value function lies in the leading singular and in the first Krylov directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tlstd_lab.chart import COLOURS, DASHED, DOTTED, SOLID, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, above
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import interval

DIMENSIONS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300)
FEW, MORE = 5, 20
"""Directions that the claims are about."""
SPACES = {"singular": ("leading singular directions", "t-LSTD"), "krylov": ("Krylov directions", "Krylov LSTD")}
"""Words and colour of each."""
QUANTITIES = {"truth": ("true values", SOLID), "solution": ("LSTD's predictions", DASHED), "b": ("b, by A", DOTTED)}


class _Directions(Panel):
    """Shared by features and λ."""

    problem: ClassVar[str]
    lambda_: ClassVar[float]
    kind: ClassVar[str]
    features: ClassVar[str]
    size = (3.4, 3.1)

    def __init_subclass__(cls) -> None:
        """Say in words what is shown."""
        cls.title = f"What the directions hold, {cls.kind}, λ={cls.lambda_:g}"
        cls.caption = (
            f"Mountain Car, {cls.features}, λ={cls.lambda_:g}, 5,000 samples: share of the squared length that lies "
            "within the first directions of the right singular vectors of A, and of the Krylov space b, Ab, A²b, …. Of "
            "the true values and of LSTD's predictions (cut-off 10⁻⁴) on the 20×20 grid, and of b in what A makes of "
            "the directions."
        )

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the same decomposition of several streams."""
        return self._runs(results.scale)

    def _runs(self, scale: Scale) -> list[RunSpec]:
        settings: dict[str, Any] = {
            "problem": self.problem,
            "lambda_": self.lambda_,
            "n_samples": pick({"smoke": 300, "quick": 5000, "paper": 5000}, scale),
            "dimensions": list(DIMENSIONS[:8] if scale == "smoke" else DIMENSIONS),
        }
        return specs("directions", settings, seeds(pick({"smoke": 1, "quick": 2, "paper": 10}, scale)))

    def chart(self, results: Results) -> Chart:
        """Return the shares against the number of directions."""
        runs, series = self._runs(results.scale), []
        dimensions = runs[0].plain_settings()["dimensions"]
        for space, (words, method) in SPACES.items():
            for quantity, (kind, dash) in QUANTITIES.items():
                column = results.column(runs, f"{space}_{quantity}")
                x = dimensions[: column.shape[1]]
                series.append(curve(x, column, words, COLOURS[method], kind=kind, dash=dash, marker=""))
        x_axis, y_axis = Axis("directions", log=True), Axis("share of the squared length", low=-0.02, high=1.02)
        return Chart(series, x_axis, y_axis, legend=Legend("below", 2, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        return (
            Claim(
                f"{self.name}-krylov",
                BEYOND,
                f"{MORE} Krylov directions hold more than 95% of the true values.",
                lambda results: self._above(results, "krylov", MORE, 0.95),
            ),
            Claim(
                f"{self.name}-fewer",
                BEYOND,
                f"{FEW} Krylov directions hold more of the true values than {MORE} leading singular directions.",
                self._fewer,
            ),
        )

    def _above(self, results: Results, space: str, dimension: int, bound: float) -> Finding:
        found = self._share(results, space, dimension)
        number = interval(lambda x: float(x.mean()), found)
        other = self._share(results, "singular", dimension).mean()
        note = f"{dimension} leading singular directions: {other:.3g}"
        return Finding(above(number, bound), number, f"share of the true values in {dimension} Krylov directions", note)

    def _fewer(self, results: Results) -> Finding:
        few, more = self._share(results, "krylov", FEW), self._share(results, "singular", MORE)
        number = interval(lambda x, y: float((x - y).mean()), few, more)
        note = f"shares {few.mean():.3g} and {more.mean():.3g}"
        return Finding(
            above(number, 0.0), number, f"share in {FEW} Krylov less that in {MORE} singular directions", note
        )

    def _share(self, results: Results, space: str, dimension: int) -> Any:
        runs = self._runs(results.scale)
        column = results.column(runs, f"{space}_truth")
        return column[:, runs[0].plain_settings()["dimensions"].index(dimension)]


class TilesZero(_Directions):
    """Tiles, λ=0."""

    name, problem, lambda_ = "directions-tiles-0", "car-tiles", 0.0
    kind, features = "tiles", "1,000 tiles"


class TilesLong(_Directions):
    """Tiles, λ=0.9."""

    name, problem, lambda_ = "directions-tiles-0.9", "car-tiles", 0.9
    kind, features = "tiles", "1,000 tiles"


class RBFZero(_Directions):
    """RBFs, λ=0."""

    name, problem, lambda_ = "directions-rbf-0", "car-rbf", 0.0
    kind, features = "RBFs", "1,024 RBFs"


class RBFLong(_Directions):
    """RBFs, λ=0.9."""

    name, problem, lambda_ = "directions-rbf-0.9", "car-rbf", 0.9
    kind, features = "RBFs", "1,024 RBFs"
