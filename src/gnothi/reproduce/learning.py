"""What a recipe learns before its rows are run: indexes, references, re-rankers, readers, thresholds.

Each step goes on where it was interrupted, and does nothing where it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gnothi.calibration.choose import choose
from gnothi.config import Given, Settings, settings_of
from gnothi.config import build as built
from gnothi.errors import InvalidInput
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION, takes
from gnothi.models.identity import declaration_of
from gnothi.models.remote.budget import Budget
from gnothi.reproduce import resources
from gnothi.reproduce.parts import LAB, Part, place
from gnothi.reproduce.recipe import On, Training
from gnothi.reproduce.variants import PlannedStudy
from gnothi.retrieval.dense.encoders import Encoder
from gnothi.runs.questions import fingerprint
from gnothi.runs.rows import Row
from gnothi.session import sources
from gnothi.session.calibrate import METRIC, collect
from gnothi.session.execute import claimed, execute
from gnothi.session.fingerprints import Named
from gnothi.session.plan import Execution, Plan, QuestionSet, resolve, with_questions
from gnothi.session.watch import Watch
from gnothi.training.run import Trainable
from gnothi.training.run import run as run_training
from gnothi.types import Question

_REHEARSED = 20
"""Training questions that a rehearsal chooses a threshold on."""
FROM_RUN = ("knowledge-reference", "complexity")
"""What is learnt from how methods answer training questions."""
_DONE = "reproduced"
PAIRS = "pairs"


# --- indexes and graphs ------------------------------------------------------------------------------------------------


def build(parts: Sequence[Part], watch: Watch) -> None:
    """The index and the graph of each part, in the folder of data, where several recipes find them."""
    for part in parts:
        for source in part.built.values():
            _build(source, part, watch)


def _build(source: resources.Resource, part: Part, watch: Watch) -> None:
    out = (part.job.data or Path()) / source.index
    done = out.with_name(f"{out.name}.{'dense.' if source.encoder else ''}{_DONE}")
    if done.exists():
        return
    watch.info(f"step: index of {source.title}")
    files = [place(file, part.job) for file in source.files]
    out.parent.mkdir(parents=True, exist_ok=True)
    if source.kind == "graph":
        from gnothi.graph.building import build_graph
        from gnothi.graph.templates import packaged

        build_graph(files, out, templates=packaged(source.templates))
    else:
        from gnothi.retrieval.build import build as build_index

        build_index(files, out, fields=source.fields)
        if source.encoder:
            from gnothi.retrieval.dense.embed import embed
            from gnothi.retrieval.dense.encoders import Encoding

            embed(str(out), Encoding(source.encoder, source.question_encoder))
    done.touch()


# --- trainings -----------------------------------------------------------------------------------------------------------


def learn(part: Part, training: Training, watch: Watch) -> None:
    """One training of a part; questions are drawn at random where it takes a number of them."""
    out = part.learnt(training)
    watch.info(f"step: {training.kind} {training.name}: {out}")
    questions = part.lessons(training)
    if training.kind in FROM_RUN:
        _from_run(part, training, questions, out, watch)
    else:
        run_training(trainable(part, training, questions), watch)


def trainable(part: Part, training: Training, questions: Sequence[Question], **options: Any) -> Trainable[Any]:
    """What is trained, checked and not begun. It hears what the recipe says of models. Raises UnknownName, InvalidSetting or
    MissingDependency."""
    resources_of: dict[str, Any] = {"model": _learner(part, training.kind)}
    if training.kind in ("utility-reference", "reader"):
        resources_of["index"] = part.index
    if training.kind in ("reranker", "reader"):
        resources_of["graph"] = part.graph
    model_settings = {key: one.value for key, one in _common_settings(part).items() if key.partition(".")[0] == MODEL_SECTION}
    settings = {**model_settings, **training.settings}
    job: Trainable[Any] = _kind(training.kind).of(
        questions, part.learnt(training), settings=settings, **resources_of, **_own(training), **options
    )
    return job


def opens(part: Part, training: Training) -> Iterator[Named]:
    """What the training opens, as the thing that is trained says it; opens nothing."""
    if training.kind not in FROM_RUN:
        yield from trainable(part, training, (), collect_only=True).opens
        return
    yield from asking(part, training).opens
    if encoder := training.given.get("encoder"):
        yield Encoder, encoder


def packages(training: Training) -> Mapping[str, str]:
    """What the training imports, with the extra that brings it."""
    return {} if training.kind in FROM_RUN else getattr(_kind(training.kind), "libraries", {})


def _own(training: Training) -> dict[str, Any]:
    return {key: one for key, one in training.given.items() if key != "data"}


def _learner(part: Part, kind: str) -> str:
    """Whose answers are learnt from. Where that takes right ones and wrong ones, a rehearsal asks the laboratory's model: any
    other knows nothing of its world."""
    return LAB if part.job.rehearse and kind in ("self-knowledge", *FROM_RUN) else part.model


def _common_settings(part: Part) -> dict[str, Given]:
    """What is said of all rows, by the recipe and, stronger, by who runs it."""
    of_study = {key: Given(one, part.study.file) for key, one in part.study.settings.items()}
    return {**of_study, **part.job.settings.given}


def _kind(kind: str) -> Any:
    if kind == "reranker":
        from gnothi.training.reranker.job import TrainableReranker as Kind
    elif kind == "reader":
        from gnothi.training.reader.job import TrainableReader as Kind  # type: ignore[assignment]
    elif kind == "self-knowledge":
        from gnothi.training.self_knowledge.job import TrainableKnower as Kind  # type: ignore[assignment]
    else:
        from gnothi.training.utility_reference import TrainableReference as Kind  # type: ignore[assignment]
    return Kind


def asking(part: Part, training: Training) -> Plan:
    """The run whose outcomes are learnt from: its methods hear what is said of all rows, and what the training says of them."""
    methods, _, own = _from_outcomes(training)
    return _plan_of(part, methods, _learner(part, training.kind), own)


def _plan_of(part: Part, methods: Sequence[str], model: str, own: Mapping[str, Any]) -> Plan:
    settings = Settings({**_common_settings(part), **{key: Given(one, part.study.file) for key, one in own.items()}})
    known = {key for name in methods for key in takes(name, settings)}
    sections = {MODEL_SECTION, INDEX_SECTION, *methods}
    applicable = {key: one for key, one in settings.given.items() if key in known or key.partition(".")[0] in sections}
    return resolve(replace(part.request, methods=methods, model=model, settings=Settings(applicable)))


def answering_methods(training: Training) -> tuple[str, ...]:
    """The methods whose answers are learnt from."""
    return _from_outcomes(training)[0]


def _from_outcomes(training: Training) -> tuple[tuple[str, ...], Settings, dict[str, Any]]:
    """The methods that answer, the settings of what learns from their answers, and the others, which are the methods'."""
    if training.kind == "complexity":
        from gnothi.training.complexity import ComplexitySettings as Learning
    else:
        from gnothi.training.knowledge_reference import KnowledgeSettings as Learning  # type: ignore[assignment]
    known = settings_of(Learning)
    own = {key: Given(one, training.name) for key, one in training.settings.items() if key in known}
    chosen: Any = built(Learning, own, training.kind)
    methods = (chosen.memory, chosen.once, chosen.steps) if training.kind == "complexity" else (chosen.memory, chosen.retrieval)
    return methods, Settings(own), {key: one for key, one in training.settings.items() if key not in own}


def _from_run(part: Part, training: Training, questions: list[Question], out: Path, watch: Watch) -> None:
    """What is learnt from how methods answer training questions."""
    from gnothi.training import complexity, knowledge_reference

    run, (_, own, _) = out.with_name(f"{out.name}-run"), _from_outcomes(training)
    _answers(asking(part, training), questions, run, part, watch)
    if training.kind == "complexity":
        complexity.train_by(run, out, own)
    else:
        knowledge_reference.train_by(run, out, own, **_own(training))


def _answers(
    plan: Plan, questions: QuestionSet | list[Question], out: Path, part: Part, watch: Watch, budget: Budget | None = None
) -> list[Row]:
    with claimed(with_questions(plan, questions, execution=part.job.execution), out) as one:
        (rows,) = asyncio.run(execute([one], watch, budget=budget))
    return rows


# --- pairs of answers ----------------------------------------------------------------------------------------------------


def labelling(part: Part) -> Plan:
    """The run that makes pairs of answers and labels them."""
    from gnothi.reproduce.judging import OWN

    recipe = part.job.recipe
    own = {**(recipe.pairs or {}), **recipe.on.get(part.name, On()).pairs}
    return _plan_of(part, (OWN["pairs"],), part.model, own)


def pairs(part: Part, questions: QuestionSet, watch: Watch, budget: Budget | None) -> QuestionSet:
    """What the rows are asked: pairs of answers to the part's questions."""
    from gnothi.reproduce.judging import pairs_of

    watch.info(f"step: pairs of answers: {part.folder / PAIRS}")
    pair_questions = pairs_of(_answers(labelling(part), questions, part.folder / PAIRS, part, watch, budget))
    return QuestionSet(f"{part.questions}, {PAIRS} of answers", pair_questions, fingerprint=fingerprint(pair_questions))


def judging(planned: PlannedStudy, pair_questions: QuestionSet) -> PlannedStudy:
    """With the threshold of each likeness that is best for these pairs: the paper prints none."""
    from gnothi.reproduce.judging import best_threshold

    plans = dict(planned.plans)
    for label, plan in plans.items():
        (method,) = plan.methods
        if "likeness" in method.named:
            protocol, spec = method.named["likeness"]
            threshold = best_threshold(sources.open_learnt(protocol, spec), pair_questions.questions)
            plans[label] = plan.changed({"threshold": threshold}, "the best for these pairs")
    return replace(planned, plans=plans)


# --- thresholds ----------------------------------------------------------------------------------------------------------


def calibrate(part: Part, planned: PlannedStudy, watch: Watch) -> PlannedStudy:
    """With thresholds for the rows that want one chosen, but where the model says its own."""
    if not (wanting := to_calibrate(part, planned)):
        return planned
    data = resources.find("data", part.job.recipe.calibration)
    spec = data.rehearse if part.job.rehearse else place(data.training or data.questions, part.job)
    questions = part.to_learn_from(spec, _REHEARSED if part.job.rehearse else part.job.recipe.calibrate_on)
    chosen = {label: _calibrated(part, label, plan, questions, watch) for label, plan in wanting.items()}
    return replace(planned, plans={**planned.plans, **chosen})


def to_calibrate(part: Part, planned: PlannedStudy) -> dict[str, Plan]:
    """The rows whose threshold is to be chosen."""
    rows = part.job.recipe.rows
    return {label: plan for label, plan in planned.plans.items() if label in rows and rows[label].calibrate and _wants(plan)}


def _wants(plan: Plan) -> bool:
    (method,) = plan.methods
    gate = method.gate
    if plan.calibration is not None:
        return False
    speaker = method.speaker(plan.sources.model)
    return gate is not None and gate.signal is not None and gate.signal not in declaration_of(speaker).thresholds


def _calibrated(part: Part, label: str, plan: Plan, questions: list[Question], watch: Watch) -> Plan:
    (method,) = plan.methods
    gate = method.gate
    assert gate is not None
    watch.info(f"step: threshold of {label}")
    planned = with_questions(replace(plan, question_set=None), questions, execution=Execution(seed=part.job.execution.seed))
    model = "-".join(str(plan.sources.model).replace(":", "/").split("/"))
    folder = part.job.learnt / "thresholds" / model / part.study.variant(label).folder / str(method.values.get("form", ""))
    metric = part.study.metric if part.study.metric == "accuracy" else METRIC
    source = asyncio.run(collect(planned, metric, folder, True, watch))
    try:
        threshold = choose(source.sample, price=0.0).threshold
    except InvalidInput:
        if not part.job.rehearse:
            raise
        threshold = float(np.median(source.sample.scores))  # nothing was right; the rows are to be run all the same
    return plan.changed(gate.at(source.sign * threshold), f"calibrated in {folder}")
