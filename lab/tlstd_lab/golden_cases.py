"""What ``golden.py`` records: cases by name, of the estimators, the library's other parts, and the experiments."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

import tlstd
from tlstd import (
    ATD,
    ILSTD,
    LSTD,
    TD,
    TLSTD,
    Decay,
    Handover,
    KrylovLSTD,
    Transitions,
    TrueOnlineTD,
    diagnostics,
    domains,
    evaluation,
    features,
    streams,
)
from tlstd.checks.data import as_sparse, stream
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.estimators.registry import ESTIMATORS
from tlstd.inspection import examine_file
from tlstd_lab import processes, questions, reproduce
from tlstd_lab.energy_programme import exact_values, optimal_policy
from tlstd_lab.panel import Results, Scale
from tlstd_lab.store import Store
from tlstd_lab.theorem import bound, compare, proof_steps

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "results").is_dir())
PANELS = ("1a", "2a", "3a", "A.1", "printed")
"""Run at the scale "smoke"."""

# --- estimators -----------------------------------------------------------------------------------------------------

VARIANTS: dict[str, Callable[..., Any]] = {
    "TLSTD, buffer 1": partial(TLSTD, rank=6, lambda_=0.9, buffer_size=1),
    "TLSTD, buffer 8": partial(TLSTD, rank=6, lambda_=0.9, buffer_size=8),
    "TLSTD, buffer 50, rcond": partial(TLSTD, rank=6, lambda_=0.9, buffer_size=50, rcond=0.01),
    "TLSTD, beta": partial(TLSTD, rank=6, lambda_=0.9, beta=0.02),
    "TLSTD, replacing": partial(TLSTD, rank=12, lambda_=0.9, trace="replacing", buffer_size=20),
    "TLSTD, replacing, beta": partial(TLSTD, rank=6, lambda_=0.9, trace="replacing", buffer_size=8, beta=0.02),
    "TLSTD, subspace": partial(TLSTD, rank=6, lambda_=0.2, subspace_lambda=1.0, buffer_size=8),
    "TLSTD, subspace, beta": partial(TLSTD, rank=6, lambda_=0.2, subspace_lambda=0.5, beta=0.02),
    "TLSTD, projected, beta": partial(TLSTD, rank=6, lambda_=0.9, reads="projected", buffer_size=8, beta=0.02),
    "TLSTD, projected, subspace": partial(TLSTD, rank=6, lambda_=0.2, reads="projected", subspace_lambda=1.0),
    "LSTD, rcond, beta": partial(LSTD, lambda_=0.0, rcond=0.05, beta=0.02),
    "LSTD, tikhonov, replacing": partial(LSTD, lambda_=0.9, tikhonov=0.1, trace="replacing"),
    "LSTD, recursive, beta": partial(LSTD, lambda_=0.9, solver="recursive", initial_diagonal=0.1, beta=0.02),
    "KrylovLSTD, auto": partial(KrylovLSTD, lambda_=0.9),
    "KrylovLSTD, auto, stream": partial(KrylovLSTD, lambda_=0.9, reads="stream"),
    "KrylovLSTD, ridge, beta": partial(KrylovLSTD, lambda_=0.9, dimension=5, ridge=0.01, beta=0.02),
    "KrylovLSTD, stream, beta": partial(KrylovLSTD, lambda_=0.9, dimension=5, reads="stream", beta=0.02),
    "KrylovLSTD, stream, max_samples": partial(KrylovLSTD, lambda_=0.0, dimension=5, reads="stream", max_samples=32),
    "KrylovLSTD, auto, max_samples": partial(KrylovLSTD, lambda_=0.9, ridge=0.01, max_samples=50),
    "TD, decay": partial(TD, step_size=Decay(0.2, 50), lambda_=0.9),
    "TD, diverging": partial(TD, step_size=1e5, lambda_=1.0),
    "TrueOnlineTD, decay": partial(TrueOnlineTD, step_size=Decay(0.2, 50), lambda_=0.9),
    "ILSTD, one coordinate": partial(ILSTD, step_size=0.02, lambda_=0.0),
    "ATD, rank 0": partial(ATD, rank=0, step_size=Decay(1.0, 0), lambda_=0.9, eta=0.05),
    "ATD, buffer 8, beta": partial(ATD, rank=4, step_size=0.1, lambda_=0.9, eta=0.01, buffer_size=8, beta=0.02),
    "ATD, replacing": partial(ATD, rank=4, step_size=Decay(1.0, 10), lambda_=0.9, eta=0.01, trace="replacing"),
    "Handover, projected": lambda n_features, **options: Handover(
        TLSTD(n_features, 4, lambda_=0.9, reads="projected", buffer_size=8, **options),
        TrueOnlineTD(n_features, step_size=0.02, lambda_=0.9, **options),
        after=30,
    ),
}
"""With options that no typical instance of the registry has."""

ALWAYS = ("weights", "sparse_weights", "n_updates")
AT_THE_END = (
    "n_seen",
    "seen_ids",
    "singular_values",
    "factors",
    "system",
    "chosen_dimension",
    "choices",
    "handed_over",
)
"""Public attributes, and methods without arguments, of the estimators that have them."""

CAR = domains.DOMAINS["MountainCar"]()
generator = partial(np.random.default_rng, 3)
TILES = tlstd.TileCoder(CAR.low, CAR.high, tiles=4, tilings=6, bias=True)


@cache
def learning_streams() -> dict[str, Transitions]:
    """Streams of the contract suite, changed ones and others, with terminations and truncations."""
    rng, wide = np.random.default_rng(1), as_sparse(stream(200, n_features=60))
    rhos = np.where(rng.random(200) < 0.05, 0.0, rng.uniform(0.3, 1.7, 200))
    gammas = rng.choice([0.0, 0.5, 0.9, 0.99, 1.0], 200, p=[0.1, 0.2, 0.3, 0.3, 0.1])
    return {
        "dense": stream(150),
        "normal": changed(stream(150), rng.standard_normal((2, 150, 12))),  # no feature is ever 0
        "sparse": wide,
        "targets": stream(80, n_targets=3),
        "walk": tlstd.random_walk(19).sample(300, np.random.default_rng(0), truncate_after=40),
        "discounts": changed(stream(200), discounts=gammas, trace_discounts=np.append(0.0, gammas[:-1]), rhos=rhos),
        "off-policy": changed(wide, rhos=rhos),
        "sparse targets": as_sparse(stream(120, seed=1, n_targets=3, n_features=60)),
        "tiles": streams.record(CAR, None, TILES, n_steps=200, seed=0, episode_cap=70),
        "mixed": as_sparse(mixed(stream(200, n_features=60), rng)),
        "hashed": changed(wide, [spread(wide.X), spread(wide.X_next)]),
    }


def changed(steps: Transitions, x: Any = None, **columns: Any) -> Transitions:
    X, X_next = (steps.X, steps.X_next) if x is None else x
    same = {name: getattr(steps, name) for name in ("discounts", "trace_discounts", "rhos")}
    return Transitions(X, steps.rewards, X_next, **same | columns)


def mixed(steps: Transitions, rng: np.random.Generator) -> Transitions:
    """Sparse, then dense, then sparse features, for which the storage is changed."""
    is_dense = np.abs(np.arange(len(steps)) - 100)[:, None] < 35
    x, x_next = rng.standard_normal((2, len(steps), steps.n_features))
    return changed(steps, (np.where(is_dense, x, steps.X), np.where(is_dense, x_next, steps.X_next)))


def spread(X: Any) -> Any:
    """The same numbers among 2³¹ features."""
    return sp.csr_array((X.data, X.indices.astype(np.int64) << 25, X.indptr), shape=(X.shape[0], 2**31))


def learn(factory: Callable[..., Any], name: str) -> dict[str, Any]:
    """What comes out of a stream, learned from in several ways."""
    steps = learning_streams()[name]
    options = {"n_targets": steps.n_targets} if steps.n_targets > 1 else {}
    make = partial(factory, steps.n_features, **options)
    ways: tuple[Callable[..., Any], ...] = (at_once, one_by_one, in_two_parts, predicting, from_weights)
    return {way.__name__: attempt(lambda way=way: way(make(), steps)) for way in ways}  # type: ignore[misc]


def orthonormalised() -> dict[str, Any]:
    """So many compressions that the factors have to be made orthonormal again, after about 900 of them."""
    rng, scales, fixed = np.random.default_rng(0), 10.0 ** np.linspace(-2.0, 2.0, 40), np.full(1000, 0.9)
    X, rewards = rng.standard_normal((1001, 40)) * scales, rng.standard_normal(1000)
    steps = Transitions(X[:-1], rewards, X[1:], discounts=fixed, trace_discounts=fixed * (np.arange(1000) % 50 > 0))
    return at_once(TLSTD(40, 20, lambda_=0.2, subspace_lambda=1.0, buffer_size=1), steps)


def attempt(action: Callable[[], Any]) -> Any:
    """What comes out, or that it was refused."""
    try:
        return action()
    except (tlstd.TlstdError, TypeError) as error:  # TypeError: the class has no such option
        return f"refused: {type(error).__name__}"


def at_once(model: Any, steps: Transitions) -> dict[str, Any]:
    model.update_many(steps)
    found = reads(model, steps, ALWAYS + AT_THE_END)
    if hasattr(model, "operator"):
        operator, v = model.operator(), np.linspace(-1.0, 2.0, model.n_seen)
        found["operator"] = [operator.b(), operator.matvec(v), operator.rmatvec(v)]
    return found


def one_by_one(model: Any, steps: Transitions) -> dict[str, Any]:
    for step in steps:
        model.update(step)
    return reads(model, steps)


def in_two_parts(model: Any, steps: Transitions) -> dict[str, Any]:
    model.update_many(steps[:61])
    with tempfile.TemporaryDirectory() as folder:
        first, path = reads(model, steps), Path(folder) / "model"
        file = attempt(lambda: model.save(path))
        if path.exists():
            model, file = tlstd.load(path), saved(path)
    model.update_many(steps[61:])
    return {"first": first, "file": file, "both": reads(model, steps)}


def predicting(model: Any, steps: Transitions) -> dict[str, Any]:
    return {"values": model.update_and_predict(steps[:50])} | reads(model, steps)


def from_weights(model: Any, steps: Transitions) -> dict[str, Any] | None:
    if not hasattr(model, "start_from") or steps.n_features > 1000:
        return None
    weights = np.linspace(-1.0, 2.0, steps.n_features * steps.n_targets)
    model.start_from(weights.reshape(-1, steps.n_targets) if steps.n_targets > 1 else weights)
    model.update_many(steps)
    return reads(model, steps)


def reads(model: Any, steps: Transitions, names: Sequence[str] = ALWAYS) -> dict[str, Any]:
    """Predictions of vectors before weights are solved for, then the rest."""
    vectors = [model.predict(steps[t].x) for t in (0, len(steps) // 2)]
    found = {"of vectors": vectors, "of a matrix": model.predict(steps.X[:40])}
    return found | {name: attempt(partial(reading, model, name)) for name in names if name in dir(model)}


def reading(model: Any, name: str) -> Any:
    value = getattr(model, name)
    return value() if callable(value) else value


def saved(path: Path) -> dict[str, Any]:
    """A saved model, read as ``docs/state.md`` has the format, and what ``tlstd inspect`` says of it."""
    data, frame = path.read_bytes(), struct.Struct("<8sI32sQQ")
    length = frame.unpack_from(data)[3]
    header, payload = json.loads(data[frame.size : frame.size + length]), data[frame.size + length :]
    arrays = {}
    for entry in header.pop("arrays"):
        flat = np.frombuffer(payload, entry["dtype"], math.prod(entry["shape"]), entry["offset"])
        arrays[entry["name"]] = flat.reshape(entry["shape"])
    inspected = examine_file(path).plain()
    for name in ("path", "file_bytes", "memory_bytes"):
        inspected.pop(name)
    if inspected["factors"]:
        inspected["factors"].pop("orthogonality_error")  # nothing but rounding
    return {"sha256": hashlib.sha256(data).hexdigest(), "header": header, "arrays": arrays, "inspected": inspected}


# --- features, domains, choices, diagnostics ------------------------------------------------------------------------


def encodings(make: Callable[..., Any]) -> list[Any]:
    made, rng = make(np.array([-1.0, 0.0]), np.array([1.0, 3.0])), np.random.default_rng(0)
    states, actions = rng.uniform([-1.2, -0.2], [1.2, 3.2], (40, 2)), rng.integers(0, 3, 40)
    with_actions = features.StateAction(made, 3)
    own = [made.n_features, made.encode(states[0]), made.encode_many(states)]
    return [*own, with_actions.encode(states[0], 2), with_actions.encode_many(states, actions)]


def columns(steps: Transitions) -> dict[str, Any]:
    return {name: getattr(steps, name) for name in ("X", "X_next", "rewards", "discounts", "trace_discounts", "rhos")}


def simulated(name: str) -> dict[str, Any]:
    domain, env = domains.DOMAINS[name](), import_module("gymnasium").make(f"tlstd.envs:tlstd/{name}-v0")
    policy = optimal_policy(domain) if isinstance(domain, EnergyStorage) else domain.policy()
    map_, states = tlstd.TileCoder(domain.low, domain.high, tiles=3, tilings=4), domain.start(5, generator())
    rollouts = partial(evaluation.rollout_values, n_rollouts=3, rng=generator(), gamma=0.9, tolerance=0.1)
    return {
        "recorded": columns(streams.record(domain, policy, map_, n_steps=150, seed=3, episode_cap=60)),
        "gymnasium": columns(streams.from_gymnasium(env, None, map_, n_steps=80, gamma=0.9, seed=3)),
        "true values": attempt(lambda: evaluation.true_values(domain, states, policy=policy)),
        "rollouts": rollouts(domain, states, policy=policy),
    }


def stepped() -> dict[str, Any]:
    """Transitions made one by one, of whole episodes, off-policy, and of several environments."""
    X, builder = TILES.encode_many(CAR.start(5, generator())), tlstd.TransitionBuilder(gamma=0.9)
    builder.reset(X[[0]].toarray()[0])
    ends: list[dict[str, Any]] = [{}, {"discount": 0.5, "rho": 0.7}, {"truncated": True}]
    built = [builder.step(float(t), X[[t + 1]].toarray()[0], **end) for t, end in enumerate(ends)]
    behaviour = import_module("tlstd.domains.policies").EpsilonGreedy(CAR.policy(), [-1, 0, 1], 0.3)
    envs = import_module("gymnasium").make_vec("tlstd.envs:tlstd/MountainCar-v0", num_envs=2)
    return {
        "built": built,
        "episodes": columns(Transitions.from_episodes([(X, [1.0, 2.0, 3.0, 4.0], True)] * 2, gamma=0.9)),
        "one by one": list(islice(streams.stream(CAR, None, TILES, seed=3, episode_cap=20), 50)),
        "off-policy": columns(streams.record(CAR, None, TILES, n_steps=80, seed=3, behaviour=behaviour)),
        "vector": columns(streams.from_gymnasium(envs, None, TILES, n_steps=80, gamma=0.9, seed=3)),
    }


def small_storage() -> Any:
    domain = EnergyStorage(capacity=4, max_flow=2, price=(30, 40), period=6, jump=(5.0, 3))
    return exact_values(domain, optimal_policy(domain), domain.start(30, generator()), cache=False)


ORACLES = domains.ORACLES | processes.ORACLES
DRAWN_ORACLES = ("garnet", "garnet_off_policy")
"""Those that take a random generator."""


def oracle(name: str) -> dict[str, Any]:
    make = ORACLES[name]
    made = make(12, 3, 2, 5, generator(), gamma=0.9) if name in DRAWN_ORACLES else make()
    (A, b), model = made.system(0.5), LSTD(made.n_features, lambda_=0.5)
    steps = made.sample(400, generator(), truncate_after=30)
    model.update_many(steps)
    ids, A_t, b_t = model.system()
    return {
        "process": [made.values(), made.state_distribution(), A, b, made.solution(0.5), columns(steps)],
        "diagnosed": diagnosed(A[np.ix_(ids, ids)], b[ids], A_t, b_t[:, 0]),
    }


def diagnosed(A: Any, b: Any, A_t: Any, b_t: Any) -> dict[str, Any]:
    """Spectrum, Picard condition and bounds."""
    sigma, condition, comparison = (
        diagnostics.spectrum(A),
        diagnostics.picard(A, b),
        compare(A, b, A_t, b_t),
    )
    bounds = [bound(A, b, A_t, b_t, rank, constant=None) for rank in (1, 2, sigma.size)]
    return {
        "spectrum": [sigma, diagnostics.effective_rank(sigma), condition, condition.trend()],
        "exponents": [condition.exponents(10.0), condition.average_exponents(10.0)],
        "constants": [condition.constant(1.5), condition.average(1.5)],
        "bounds": [comparison, *bounds, *proof_steps(comparison, 2, p=1.5)],
    }


CHOICES: dict[str, tuple[Callable[[Any], Any], Sequence[Any]]] = {
    "walk": (lambda rank: TLSTD(19, rank, lambda_=0.8), (2, 5, 10, 19)),
    "off-policy": (lambda lambda_: LSTD(60, lambda_=lambda_), (0.0, 0.5, 0.9)),
    "tiles": (lambda alpha: TD(TILES.n_features, step_size=alpha, lambda_=0.8), (0.01, 0.1, 1e9)),
    "sparse targets": (lambda m: KrylovLSTD(60, lambda_=0.5, dimension=m, beta=0.001, n_targets=3), (1, 4)),
}
"""By stream."""


def chosen(name: str) -> dict[str, Any]:
    choice = evaluation.choose(*CHOICES[name], learning_streams()[name])
    names = ("value", "decided", "scores", "standard_errors", "simplest", "n_scored", "note")
    return {name: getattr(choice, name) for name in names}


# --- the laboratory -------------------------------------------------------------------------------------------------


def panel(name: str) -> dict[str, Any]:
    """A panel at the smallest scale: its runs by key, its claims, and the numbers in its figure."""
    from matplotlib.figure import Figure

    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        results, report = reproduce.run([name], "smoke", store)
        assert report.complete, report
        runs = {key: run for key, run in store.read_many(sorted(store.keys())).items() if not run.spec.timed}
        with mock.patch.object(Figure, "savefig", lambda figure, *args, **options: figures.append(figure)):
            reproduce.draw([name], results, Path(folder))
        claims = judged([name], results)
    return claims | {
        "captions": reproduce.captions([name], "smoke"),
        "runs": {key: {"spec": run.spec.to_json(), "columns": run.columns} for key, run in runs.items()},
        "figure": [drawn(axes) for axes in figures[0].axes],
    }


def drawn(axes: Any) -> dict[str, Any]:
    words = [*axes.texts, *(axes.get_legend().get_texts() if axes.get_legend() else ())]
    return {
        "lines": [line.get_xydata() for line in axes.lines],
        "areas": [[path.vertices for path in area.get_paths()] for area in axes.collections],
        "marks": [np.asarray(marks.get_offsets()) for marks in axes.collections],
        "axes": [axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale(), axes.get_yscale()],
        "words": [text.get_text() for text in words],
    }


def committed(scale: Scale) -> dict[str, Any]:
    """The claims as they follow from the committed runs."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, [ROOT / "results" / f"{scale}.parquet"])
        return judged(questions.names([]), Results(store, scale))


def judged(names: Sequence[str], results: Any) -> dict[str, Any]:
    """Claims as data and as a page; without panels of which runs are missing, as some are at the largest scale."""
    found, missing = [], []
    for name in names:
        try:
            found += reproduce.judge([name], results)
        except LookupError:
            missing.append(name)
    claims = {claim.name: [claim.where, claim.statement, asdict(finding)] for claim, finding in found}
    return {"claims": claims, "page": reproduce.claims_page(found, results.scale), "missing": missing}


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Everything that is recorded, by name."""
    registered, varied = list(learning_streams())[:-1], list(learning_streams())[5:]
    for chosen_streams, factories in ((registered, ESTIMATORS), (varied, VARIANTS)):
        for model, factory in factories.items():
            yield from ((f"estimators/{model}/{name}", partial(learn, factory, name)) for name in chosen_streams)
    yield "estimators/TLSTD, orthonormalised", orthonormalised
    yield from ((f"features/{name}", partial(encodings, make)) for name, make in features.FEATURE_MAPS.items())
    yield from ((f"domains/{name}", partial(simulated, name)) for name in domains.DOMAINS)
    yield "domains/small storage", small_storage
    yield "streams", stepped
    yield from ((f"oracles/{name}", partial(oracle, name)) for name in ORACLES)
    yield from ((f"choices/{name}", partial(chosen, name)) for name in CHOICES)
    yield from ((f"panels/{name}", partial(panel, name)) for name in PANELS)
    yield from ((f"claims/{scale}", partial(committed, scale)) for scale in ("quick", "paper"))
