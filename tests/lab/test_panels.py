"""What holds for every panel, and what the claims of some say of made-up results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tlstd_lab import statistics
from tlstd_lab.panel import SCALES, TUNING_SEED, Panel, best, seeds, specs
from tlstd_lab.questions import PANELS, names, panel
from tlstd_lab.questions.figure_1.panel import RankRBF, RankTiles
from tlstd_lab.questions.subspace.panel import CarTiles
from tlstd_lab.questions.switching.panel import Bias, Switch
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Columns, Synthetic
from tlstd.errors import InvalidParameterError


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


PAPER = (
    "1a 1b 2a 2b 3a 3b 3c A.1 A.2 A.3 A.4 A.5 A.6 A.7 A.8 B.1 B.2 B.3 B.4 B.5 B.6 B.7".split()  # noqa: SIM905
)


def verdicts(made: Panel, results: Synthetic) -> dict[str, str]:
    return {claim.name: claim.judge(results).verdict for claim in made.claims()}


def rmse(value: Callable[[dict[str, Any], int], Any]) -> Callable[[RunSpec], Columns]:
    """Columns of the task "curve" whose errors are a function of the estimator and the seed."""

    def columns(spec: RunSpec) -> Columns:
        settings = spec.plain_settings()
        samples = np.array(settings["samples"])
        return {"samples": samples, "rmse": np.broadcast_to(value(settings["estimator"], spec.seed), samples.shape)}

    return columns


def test_all_22_panels_of_the_paper_are_there() -> None:
    assert len(PAPER) == 22
    assert list(PANELS)[:22] == PAPER


@pytest.mark.parametrize("name", PANELS)
def test_definitions(name: str) -> None:
    made = panel(name)
    assert made.name == name
    assert made.title
    assert made.caption
    for scale in SCALES:
        sweep = made.tuning(scale)
        assert all(spec.seed >= TUNING_SEED for spec in sweep)
        if not sweep:
            runs = made.runs(Synthetic(scale, rmse(lambda estimator, seed: 1.0)))
            assert runs
            assert all(spec.seed < TUNING_SEED for spec in runs)


def test_claims_have_different_names() -> None:
    claims = [claim for name in PANELS for claim in panel(name).claims()]
    assert len({claim.name for claim in claims}) == len(claims)
    assert all(claim.where and claim.statement.endswith(".") for claim in claims)


def test_names() -> None:
    assert names([]) == list(PANELS)
    assert names(["1b", "1"]) == ["1b", "1a"]
    with pytest.raises(InvalidParameterError, match="there is no figure 'Z'"):
        names(["Z"])
    with pytest.raises(InvalidParameterError, match="there is no figure '1'"):
        panel("1")


def test_best_is_the_lowest_that_never_diverges() -> None:
    candidates = [specs("no.such:task", {"step": step}, seeds(3, tuning=True)) for step in (1, 2, 3)]

    def columns(spec: RunSpec) -> Columns:
        step = spec.settings["step"]
        return {"rmse": [np.inf if step == 3 and spec.seed == TUNING_SEED + 2 else 1.0 / step]}

    assert best(Synthetic("smoke", columns), candidates) == {"step": 2}


def test_if_all_diverge_the_best_lost_least() -> None:
    candidates = [specs("no.such:task", {"lost": lost}, seeds(1, tuning=True)) for lost in (3, 1, 2)]
    results = Synthetic("smoke", lambda spec: {"rmse": np.where(np.arange(4) < spec.settings["lost"], np.inf, 1.0)})
    assert best(results, candidates) == {"lost": 1}


class TestFigure1:
    @staticmethod
    def lstd_from(rank: int, error: float = 10.0) -> Callable[[RunSpec], Columns]:
        """Errors that fall as 1/rank until they are LSTD's from ``rank`` on."""
        return rmse(lambda e, seed: (1 + 0.001 * seed) * error * max(1.0, rank / e.get("rank", rank)))

    @pytest.mark.parametrize(("cls", "good", "bad"), [(RankTiles, 300, 1200), (RankRBF, 50, 200)])
    def test_enough(self, cls: type[RankTiles | RankRBF], good: int, bad: int) -> None:
        made = cls()
        assert verdicts(made, Synthetic("paper", self.lstd_from(good)))[f"{made.name}-enough"] == "reproduced"
        assert verdicts(made, Synthetic("paper", self.lstd_from(bad)))[f"{made.name}-enough"] == "not"

    def test_lstd_has_its_own_lambda(self) -> None:
        def error(estimator: dict[str, Any], seed: int) -> float:
            return (10.0 if estimator["lambda_"] == 1 else 30.0) if "rank" in estimator else 10.0 - estimator["lambda_"]

        found = RankTiles().claims()[0].judge(Synthetic("paper", rmse(error)))
        assert found.verdict == "partly"  # LSTD is better with the other λ
        assert found.number.value == pytest.approx(10.0 / 9.0)

    def test_graceful(self) -> None:
        gentle = rmse(lambda e, seed: 10.0 * (1000.0 / e.get("rank", 1000)) ** 0.5)
        assert verdicts(RankTiles(), Synthetic("paper", gentle))["1a-graceful"] == "reproduced"
        cliff = rmse(lambda e, seed: 1.0 if e.get("rank", 400) >= 100 else 50.0)
        assert verdicts(RankTiles(), Synthetic("paper", cliff))["1a-graceful"] == "not"

    def test_overfit(self) -> None:
        assert verdicts(RankRBF(), Synthetic("paper", self.lstd_from(50)))["1b-overfit"] == "not"
        rising = rmse(lambda e, seed: 10.0 + 0.05 * e.get("rank", 0))
        assert verdicts(RankRBF(), Synthetic("paper", rising))["1b-overfit"] == "reproduced"

    def test_cause(self) -> None:
        helps = rmse(lambda e, seed: 5.0 if "rcond" in e else 10.0)
        assert verdicts(RankTiles(), Synthetic("paper", helps))["1a-cause"] == "reproduced"
        hurts = rmse(lambda e, seed: 12.0 if "rcond" in e else 10.0)
        assert verdicts(RankTiles(), Synthetic("paper", hurts))["1a-cause"] == "not"

    def test_levels(self) -> None:
        assert verdicts(RankTiles(), Synthetic("paper", self.lstd_from(50)))["1a-levels"] == "reproduced"
        assert verdicts(RankTiles(), Synthetic("paper", self.lstd_from(300)))["1a-levels"] == "not"


def test_subspace() -> None:
    helps = rmse(lambda e, seed: 5.0 if "subspace_lambda" in e else 10.0)
    assert verdicts(CarTiles(), Synthetic("paper", helps)) == {"subspace-car-tiles-helps": "reproduced"}
    hurts = rmse(lambda e, seed: 12.0 if "subspace_lambda" in e and e["lambda_"] == 0 else 10.0)
    assert verdicts(CarTiles(), Synthetic("paper", hurts)) == {"subspace-car-tiles-helps": "not"}


def test_switching() -> None:
    def error(factor: float) -> Callable[[dict[str, Any], int], float]:
        return lambda e, seed: (1 + 0.001 * seed) * (factor if e["class"] == "Handover" else 1.0)

    for factor, expected in ((0.9, "reproduced"), (2.0, "not")):
        results = Synthetic("paper", rmse(error(factor)))
        assert set(verdicts(Bias(), results).values()) == {expected}
        assert set(verdicts(Switch(), results).values()) == {expected}
