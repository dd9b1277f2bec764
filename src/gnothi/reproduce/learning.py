"""What a recipe learns before its rows are run: indexes, references, re-rankers, readers, thresholds.

Each step goes on where it was interrupted, and does nothing where it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration.choose import choose
from gnothi.calibration.gate import gate_of
from gnothi.errors import InvalidInput
from gnothi.models.identity import declaration_of
from gnothi.reproduce import resources
from gnothi.reproduce.parts import LAB, Part, place
from gnothi.reproduce.recipe import On, Training
from gnothi.reproduce.variants import PlannedStudy
from gnothi.session.calibrate import METRIC, collect
from gnothi.session.execute import Watch, claimed, execute
from gnothi.session.plan import Execution, Plan, resolve, with_questions
from gnothi.training.watch import Watch as TrainingWatch
from gnothi.types import Question

CALIBRATED_ON = 300
"""Training questions that a threshold is chosen on; in a rehearsal as few as will do."""
_REHEARSED = 20
_FROM_RUN = {"knowledge-reference": ("direct", "rag"), "complexity": ("cot", "rag", "ircot")}
_DONE = "reproduced"


@dataclass(frozen=True, slots=True)
class Watching:
    """Who is told how far the work is; ``step`` hears what begins."""

    step: Callable[[str], None] = lambda _: None
    answering: Watch = field(default_factory=Watch)
    training: TrainingWatch = field(default_factory=TrainingWatch)


# --- indexes and graphs ------------------------------------------------------------------------------------------------


def build(parts: Sequence[Part], watching: Watching) -> None:
    """The index and the graph of each part, in the folder of data, where several recipes find them."""
    for part in parts:
        recipe, on = part.job.recipe, part.job.recipe.on.get(part.name, On())
        for kind, name in (("corpus", on.corpus or recipe.corpus), ("graph", on.graph or recipe.study.graph)):
            if name and not part.job.rehearse:
                _build(resources.find(kind, name), part, watching)


def _build(source: resources.Resource, part: Part, watching: Watching) -> None:
    out = (part.job.data or Path()) / source.index
    done = out.with_name(f"{out.name}.{'dense.' if source.encoder else ''}{_DONE}")
    if done.exists():
        return
    watching.step(f"index of {source.title}")
    files = [place(file, part.job) for file in source.files]
    out.parent.mkdir(parents=True, exist_ok=True)
    if source.kind == "graph":
        from gnothi.graph.building import build_graph
        from gnothi.graph.templates import packaged

        build_graph(files, out, templates=packaged(source.templates))
    else:
        from gnothi.retrieval.build import build as build_index

        build_index(files, out)
        if source.encoder:
            from gnothi.retrieval.dense.embed import embed
            from gnothi.retrieval.dense.encoders import Encoding

            embed(str(out), Encoding(source.encoder, source.question_encoder))
    done.touch()


# --- trainings -----------------------------------------------------------------------------------------------------------


def learn(part: Part, training: Training, watching: Watching) -> None:
    """One training of a part; questions are drawn at random where it takes a number of them."""
    out, spec = part.learnt(training), part.learnt_from(training)
    watching.step(f"{training.kind} {training.name}: {out}")
    questions = part.to_learn_from(spec, training.limit)
    given = {key: one for key, one in training.given.items() if key != "data"}
    if training.kind in _FROM_RUN:
        _from_run(part, training.kind, questions, out, given, watching)
        return
    resources_of: dict[str, Any] = {"model": _learner(part, training.kind)}
    if training.kind in ("utility-reference", "reader"):
        resources_of["index"] = part.index
    if training.kind in ("reranker", "reader"):
        resources_of["graph"] = part.graph
    settings = {**_of_model(part), **training.settings}
    _trainable(training.kind).train_from(questions, out, watch=watching.training, settings=settings, **resources_of, **given)


def _learner(part: Part, kind: str) -> str:
    """Whose answers are learnt from. Where that takes right ones and wrong ones, a rehearsal asks the laboratory's model: any
    other knows nothing of its world."""
    return LAB if part.job.rehearse and kind in ("self-knowledge", *_FROM_RUN) else part.model


def _of_model(part: Part) -> dict[str, Any]:
    """What was given for models, which trainings hear, too."""
    return {key: one.value for key, one in part.job.settings.given.items() if key.startswith("model.")}


def _trainable(kind: str) -> Any:
    if kind == "reranker":
        from gnothi.training.reranker.job import TrainableReranker as found
    elif kind == "reader":
        from gnothi.training.reader.job import TrainableReader as found  # type: ignore[assignment]
    elif kind == "self-knowledge":
        from gnothi.training.self_knowledge.job import TrainableKnower as found  # type: ignore[assignment]
    else:
        from gnothi.training.utility_reference import TrainableReference as found  # type: ignore[assignment]
    return found


def _from_run(part: Part, kind: str, questions: list[Question], out: Path, given: dict[str, Any], watching: Watching) -> None:
    """What is learnt from how methods answer training questions."""
    from gnothi.training.complexity import train as complexity
    from gnothi.training.knowledge_reference import train as knowledge

    methods = _FROM_RUN[kind]
    run = out.with_name(f"{out.name}-run")
    asking = replace(part.request, methods=methods, model=_learner(part, kind))
    plan = with_questions(resolve(asking), questions, execution=part.job.execution)
    with claimed(plan, run, kind) as one:
        asyncio.run(execute([one], watching.answering))
    if kind == "complexity":
        complexity(run, out, methods)
    else:
        knowledge(run, out, methods[0], methods[1], **given)


# --- thresholds ----------------------------------------------------------------------------------------------------------


def calibrate(part: Part, planned: PlannedStudy, watching: Watching) -> PlannedStudy:
    """With thresholds for the rows that want one chosen, but where the model says its own."""
    rows = part.job.recipe.rows
    wanting = {label: plan for label, plan in planned.plans.items() if rows[label].calibrate and _wants(plan)}
    if not wanting:
        return planned
    data = resources.find("data", part.job.recipe.calibration)
    spec = data.rehearse if part.job.rehearse else place(data.training or data.questions, part.job)
    questions = part.to_learn_from(spec, _REHEARSED if part.job.rehearse else CALIBRATED_ON)
    chosen = {label: _calibrated(part, label, plan, questions, watching) for label, plan in wanting.items()}
    return replace(planned, plans={**planned.plans, **chosen})


def _wants(plan: Plan) -> bool:
    (method,) = plan.methods
    gate = gate_of(method)
    speaker = method.speaker(plan.sources.model)
    return gate is not None and gate.signal is not None and gate.signal not in declaration_of(speaker).thresholds


def _calibrated(part: Part, label: str, plan: Plan, questions: list[Question], watching: Watching) -> Plan:
    (method,) = plan.methods
    gate = gate_of(method)
    assert gate is not None
    watching.step(f"threshold of {label}")
    asked = with_questions(replace(plan, asked=None), questions, execution=Execution(seed=part.job.execution.seed))
    model = "-".join(str(plan.sources.model).replace(":", "/").split("/"))
    folder = part.job.learnt / "thresholds" / model / part.study.variant(label).folder / str(method.values.get("form", ""))
    metric = part.study.metric if part.study.metric == "accuracy" else METRIC
    source = asyncio.run(collect(asked, metric, folder, True, watching.answering))
    try:
        threshold = choose(source.sample, price=0.0).threshold
    except InvalidInput:
        if not part.job.rehearse:
            raise
        threshold = float(np.median(source.sample.scores))  # nothing was right; the rows are to be run all the same
    return plan.changed(gate.at(source.sign * threshold), f"calibrated in {folder}")
