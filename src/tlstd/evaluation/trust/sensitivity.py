"""How much the answer depends on choices that somebody else might have made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tlstd.data.transitions import Transitions
from tlstd.evaluation.trust.evidence import MEDIUM, SMALL, Evidence
from tlstd.evaluation.trust.predictions import TOO_LITTLE, unchecked
from tlstd.evaluation.trust.verdict import Check, graded
from tlstd.features.auto_tiles import AutoTiles
from tlstd.krylov.krylov_lstd import KrylovLSTD

LAMBDAS = (0.0, 0.5, 0.8, 0.95, 1.0)
CLEARLY = 2.0
"""Standard errors by which a choice is worse on held-out returns, so that nobody would make it."""


class Variant(NamedTuple):
    """Another choice, and what it makes of the log."""

    what: str
    steps: Transitions
    features: Any
    lambda_: float
    dimension: int


def sensitivity(evidence: Evidence) -> Check:
    """How far the answer moves with λ, regularisation and features that predict as well; and with γ."""
    name, title = "sensitivity", "Other choices, same answer"
    if not evidence.can_hold_out:
        return unchecked(name, title, TOO_LITTLE)
    lambda_, dimension = evidence.settings
    base = _value(evidence, Variant("", evidence.steps, evidence.features, lambda_, dimension))
    own = evidence.squared_errors(evidence.fit.values)
    rows: list[dict[str, Any]] = []
    for variant in _variants(evidence):
        fit = evidence.held_out_fit(
            variant.steps, lambda n, v=variant: KrylovLSTD(n, lambda_=v.lambda_, dimension=v.dimension)
        )
        worse = evidence.mean(evidence.squared_errors(fit.values) - own)
        fair = not worse.value > CLEARLY * worse.error
        rows.append(
            {
                "choice": variant.what,
                "value": _value(evidence, variant),
                "held_out": "as good" if fair else "worse",
                "counts": fair,
            }
        )
    moved = max((abs(row["value"] - base) for row in rows if row["counts"]), default=0.0)
    rows += _discounts(evidence)
    effect = moved / evidence.spread if evidence.spread > 0.0 else 0.0
    noise = evidence.standard_error
    state = graded(
        moved > max(2.0 * noise, SMALL * evidence.spread), moved > max(4.0 * noise, MEDIUM * evidence.spread)
    )
    sentence = (
        f"With other choices of λ, regularisation and features that predict held-out returns as well, "
        f"{evidence.model_s[0].lower()}{evidence.model_s[1:]} moves by "
        f"up to {moved:.3g} ({effect:.2g} standard deviations of returns)"
    )
    if state != "green":
        sentence += ": the data do not decide it. Collect more, or give features that fit the problem"
    return Check(
        name,
        title,
        state,
        effect,
        "largest move of the answer, in standard deviations of returns",
        f"more than {SMALL:g} and than 2 standard errors",
        f"more than {MEDIUM:g} and than 4 standard errors",
        "Choices that held-out returns cannot tell apart are equally good; what they disagree about, nobody knows. γ "
        "is part of the question, and only shown.",
        f"{sentence}.",
        {"answer": base, "choices": rows},
    )


def _value(evidence: Evidence, variant: Variant) -> float:
    model = KrylovLSTD(variant.steps.n_features, lambda_=variant.lambda_, dimension=variant.dimension)
    model.update_many(variant.steps)
    return evidence.value_by(model, variant.features)


def _variants(evidence: Evidence) -> Iterator[Variant]:
    steps, features = evidence.steps, evidence.features
    lambda_, dimension = evidence.settings
    for other in LAMBDAS:
        if other != lambda_:
            yield Variant(f"λ = {other:g}", steps, features, other, dimension)
    for factor, word in ((2 / 3, "smaller"), (1.5, "larger")):
        changed = max(1, round(dimension * factor))
        if changed != dimension:
            yield Variant(f"dimension {changed}, {word}", steps, features, lambda_, changed)
    for what, other_map in _maps(evidence):
        encoded = evidence.log.transitions(other_map, evidence.gamma)
        yield Variant(what, encoded, other_map, lambda_, dimension)


def _maps(evidence: Evidence) -> Iterator[tuple[str, Any]]:
    """Coarser and finer tiles; tiles, where the features are others."""
    features = evidence.features
    if evidence.log.discrete:
        return
    if not isinstance(features, AutoTiles):
        yield "tiles of the observations", AutoTiles.fit(evidence.log.states)
        return
    for factor, what in ((0.5, "coarser tiles"), (1.5, "finer tiles")):
        tiles = [max(2, round(n * factor)) if n > 2 else n for n in features.tiles]
        if tiles != list(features.tiles):
            yield (
                what,
                AutoTiles(features.scales, tiles=tiles, tilings=features.tilings, hash_size=features.hash_size),
            )


def _discounts(evidence: Evidence) -> list[dict[str, Any]]:
    """The value with a horizon 1/(1 - γ) that is a tenth shorter or longer."""
    lambda_, dimension = evidence.settings
    rows: list[dict[str, Any]] = []
    for factor, word in ((1.1, "shorter"), (0.9, "longer")):
        gamma = 1.0 - (1.0 - evidence.gamma) * factor
        if not 0.0 <= gamma < 1.0 or gamma == evidence.gamma:
            continue
        steps = evidence.log.transitions(evidence.features, gamma)
        value = _value(evidence, Variant("", steps, evidence.features, lambda_, dimension))
        rows.append({"choice": f"γ = {gamma:.6g}, {word}", "value": value, "held_out": "", "counts": False})
    return rows
