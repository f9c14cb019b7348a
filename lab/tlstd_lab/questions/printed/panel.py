"""Beyond the paper: its algorithms as printed against the corrected ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlstd_lab.chart import DASHED, Axis, Chart, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, above
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

SAMPLES = {"smoke": (50, 100), "quick": (50, 100, 200, 400, 1000), "paper": (50, 100, 200, 400, 1000)}
RUNS = {"smoke": 1, "quick": 3, "paper": 5}
RANK, LAMBDA, RCOND = 50, 0.0, 0.01
FORMS: dict[str, dict[str, bool]] = {
    "printed, k=r": {"as_printed": True, "mini_batch": True},
    "printed, k=1": {"as_printed": True, "mini_batch": False},
    "corrected, k=r": {"as_printed": False, "mini_batch": True},
    "corrected, k=1": {"as_printed": False, "mini_batch": False},
}
LOOK: dict[str, dict[str, Any]] = {
    "printed, k=r": {"colour": "#E69F00", "marker": "s"},
    "printed, k=1": {"colour": "#D55E00", "marker": "^"},
    "corrected, k=r": {"colour": "#56B4E9", "marker": "o"},
    "corrected, k=1": {"colour": "#009E73", "marker": "D", "dash": DASHED},
}


class Printed(Panel):
    """RMSE of both, k=r and k=1."""

    name = "printed"
    title = "Algorithms as printed, Mountain Car, RBFs"
    caption = (
        f"The paper's pseudo-code literally, and corrected (docs/numerics.md), in dense matrices; rank {RANK}, "
        f"λ={LAMBDA:g}, cut-off {RCOND:g}."
    )

    def form_runs(self, scale: Scale, form: str) -> list[RunSpec]:
        """Return the runs of one form."""
        settings = {"problem": "car-rbf", "rank": RANK, "lambda_": LAMBDA, "rcond": RCOND}
        settings |= {"samples": pick(SAMPLES, scale), **FORMS[form]}
        return specs("printed", settings, seeds(pick(RUNS, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all forms."""
        return [spec for form in FORMS for spec in self.form_runs(results.scale, form)]

    def chart(self, results: Results) -> Chart:
        """Return errors against samples."""
        samples = pick(SAMPLES, results.scale)
        series = [
            curve(samples, results.column(self.form_runs(results.scale, form), "rmse"), form, **LOOK[form])
            for form in FORMS
        ]
        return Chart(series, Axis("samples", log=True), Axis("RMSE", log=True))

    def claims(self) -> Sequence[Claim]:
        """Return that the corrections matter."""
        statement = "As printed, the algorithms end with a larger error than corrected."
        return (Claim("printed-wrong", BEYOND, statement, self._wrong),)

    def _wrong(self, results: Results) -> Finding:
        def last(form: str) -> Any:
            return results.column(self.form_runs(results.scale, form), "rmse")[:, -1]

        found = {k: ratio_of_means(last(f"printed, k={k}"), last(f"corrected, k={k}")) for k in ("r", "1")}
        least = min(found.values(), key=lambda number: number.value)
        loss = results.column(self.form_runs(results.scale, "printed, k=r"), "orthogonality")[:, -1].max()
        note = "; ".join(f"k={k}: {number}" for k, number in found.items()) + f"; max|UᵀU−I| {loss:.2g}"
        return Finding(above(least, 1.0), least, "RMSE printed over corrected, smaller of k=r and k=1", note)
