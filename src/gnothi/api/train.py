"""``gnothi.train``: what is learnt from training questions, or from a run over them."""

from __future__ import annotations

import importlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.config import Settings
from gnothi.errors import UnknownName

if TYPE_CHECKING:
    from gnothi.models.remote.budget import Budget
    from gnothi.session.watch import Watch
    from gnothi.training.job import Data
    from gnothi.training.run import Trained

_HERE = "gnothi.training."


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that is trained: the class or function that trains it, what it is ``called``, how it is ``used`` ({} is the
    folder), and which of the options that not all kinds have it ``takes``."""

    target: str
    called: str
    used: str = "{}"
    takes: tuple[str, ...] = ()
    of_run: bool = False


STAGED = ("findings", "collect_only")
KINDS = {
    "probe": Kind(f"{_HERE}probe.job:TrainableProbe", "probe"),
    "self-knowledge": Kind(
        f"{_HERE}self_knowledge.job:TrainableKnower",
        "model",
        "use it with --model {}",
        ("index", *STAGED),
    ),
    "reader": Kind(
        f"{_HERE}reader.job:TrainableReader",
        "model",
        "use it with --model {}",
        ("method", "index", "graph", *STAGED),
    ),
    "reranker": Kind(
        f"{_HERE}reranker.job:TrainableReranker",
        "re-ranker",
        "use it with --set reranker={}",
        ("graph", "base", *STAGED),
    ),
    "utility-reference": Kind(
        f"{_HERE}utility_reference:TrainableReference",
        "reference",
        takes=("index", "encoder"),
    ),
    "knowledge-reference": Kind(
        f"{_HERE}knowledge_reference:train_by",
        "reference",
        takes=("encoder",),
        of_run=True,
    ),
    "complexity": Kind(
        f"{_HERE}complexity:train_by",
        "classifier",
        of_run=True,
    ),
}


def train(
    kind: str,
    data: Data | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    budget: Budget | None = None,
    watch: Watch | None = None,
    **given: Any,
) -> Trained:
    """Train a ``kind`` of ``gnothi train`` into the folder ``out``; the same call again resumes.

    ``data``: training questions, or for ``knowledge-reference`` and ``complexity`` the folder of a run over them. ``given``:
    ``settings``, a mapping, and what the options of the command say: ``model``, ``index``, ``graph``, ``limit`` and the like.
    ``watch`` hears of everything on the way (``gnothi.session.watch.Watch``).
    Raises UnknownName, InvalidSetting, InvalidInput, and what asking and training raise.
    """
    from gnothi.api.given import refuse_running_loop
    from gnothi.session.watch import SILENT
    from gnothi.training.run import run

    refuse_running_loop("train()", "asyncio.to_thread(gnothi.train, ...)")
    named, watch = os.fspath(data) if isinstance(data, os.PathLike) else data, watch or SILENT
    trains = trainer(kind)
    if KINDS[kind].of_run:
        return _of_run(kind, trains, Path(str(named)), Path(out), watch, given)
    return run(trains.of(named, Path(out), **given), watch, budget)


def _of_run(kind: str, trains: Any, source: Path, out: Path, watch: Watch, given: dict[str, Any]) -> Trained:
    from gnothi.report.sections import load_runs
    from gnothi.training.run import Trained

    settings = Settings.of(given.pop("settings", {}))
    if extra := given.keys() - KINDS[kind].takes:
        raise UnknownName(f"parameter of train {kind}", min(extra), ["settings", *KINDS[kind].takes])
    learnt = trains(source, out, settings, **given)
    (section,) = load_runs([source])
    if section.missing:
        watch.warn(
            f"{source} is unfinished: learnt from {len(section.rows):,} of {section.expected:,} answers. Complete it by the "
            "same `gnothi eval`, then learn again"
        )
    encoder = [("encoder", given.get("encoder", "lexical"))] if "encoder" in KINDS[kind].takes else []
    return Trained(out, 0, asdict(learnt), (*learnt.report(), *encoder))


def trainer(kind: str) -> Any:
    """The ``Trainable`` that trains it; for one that learns ``of_run``, the function. Raises UnknownName."""
    if kind not in KINDS:
        raise UnknownName("training", kind, KINDS)
    module, _, name = KINDS[kind].target.partition(":")
    return getattr(importlib.import_module(module), name)
