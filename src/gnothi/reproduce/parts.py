"""A recipe on each of its data sets, with everything in its place: in earnest, or rehearsed in the laboratory."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gnothi.calibration.file import Calibration
from gnothi.config import Settings
from gnothi.errors import InvalidSetting, UnknownName
from gnothi.lab import named
from gnothi.reproduce import resources
from gnothi.reproduce.recipe import On, Recipe, Training
from gnothi.reproduce.resources import Resource
from gnothi.reproduce.study import Study, Variant
from gnothi.runs.questions import fingerprint
from gnothi.session.data import load_questions
from gnothi.session.plan import Execution, QuestionSet, Request, read_questions
from gnothi.types import Question

LAB = named.NAME
REHEARSED = 4
"""Questions of each data set in a rehearsal."""
_PLACE = re.compile(r"\{([\w-]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is asked for. ``trained`` holds what is learnt on the way, for several recipes to share (None: in ``out``);
    ``limit`` is how many questions of each data set are drawn; ``only`` names data sets and rows of the recipe (none of a sort:
    all of it). ``dataset``, ``format``, ``index`` and ``graph`` go with a recipe without data sets of its own, whose first
    ``limit`` questions are asked."""

    recipe: Recipe
    out: Path
    dataset: str | None = None
    format: str | None = None
    index: str | None = None
    graph: str | None = None
    calibrations: tuple[Calibration, ...] = ()
    data: Path | None = None
    model: str | None = None
    rehearse: bool = False
    limit: int | None = None
    only: tuple[str, ...] = ()
    trained: Path | None = None
    settings: Settings = field(default_factory=Settings)
    execution: Execution = field(default_factory=Execution)
    max_cost: float | None = None
    max_tokens: int | None = None

    @property
    def learnt(self) -> Path:
        return self.trained or self.out / "trained"


@dataclass(frozen=True, slots=True)
class Part:
    """A recipe on one data set. ``questions`` and ``training`` are specs, ``sample`` how many are drawn of the first (None:
    all); ``study`` has no places left to fill."""

    job: Job
    source: Resource
    questions: str
    training: str
    sample: int | None
    model: str
    index: str | None
    graph: str | None
    study: Study
    trainings: tuple[Training, ...]

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def folder(self) -> Path:
        return self.job.out / self.name

    @property
    def only(self) -> list[str]:
        """The rows that were asked for, where it has none of them the full method; empty for all."""
        if not self.job.recipe.data:
            return [*self.job.only]
        rows = self.job.recipe.rows.keys() & self.job.only
        return [row.label for row in self.study.variants if row.label in rows] or ([self.study.full] if rows else [])

    @property
    def request(self) -> Request:
        job = self.job
        return Request(
            model=self.model,
            index=self.index,
            graph=self.graph,
            settings=job.settings,
            max_cost=job.max_cost,
            max_tokens=job.max_tokens,
        )

    @property
    def built(self) -> dict[str, Resource]:
        """What is built first, an index or a graph, by where it is then opened."""
        return {} if self.job.rehearse else _built(self.job, self.name)

    def learnt(self, training: Training) -> Path:
        """The folder of what is learnt: of the same questions by the same model it is the same for all recipes."""
        name = "-".join(_slug(spec) for spec in self.learnt_from(training))
        return self.job.learnt / name / _slug(self.model) / training.name

    def learnt_from(self, training: Training) -> tuple[str, ...]:
        """The training questions: of the data sets that the recipe names for it, else the part's own."""
        return tuple(dict.fromkeys(_training_of(source, self.job) for source in self.teaching(training)))

    def teaching(self, training: Training) -> list[Resource]:
        of = training.given.get("data", self.source.name)
        return [resources.find("data", name) for name in ([of] if isinstance(of, str) else of)]

    def lessons(self, training: Training) -> list[Question]:
        """Those questions, so many of each data set, none of which is asked."""
        by_spec = {_training_of(source, self.job): source for source in self.teaching(training)}
        return [one for spec, source in by_spec.items() for one in self.to_learn_from(spec, training.limit, source)]

    def sampled_questions(self) -> QuestionSet:
        """The questions: all, or so many drawn at random by the seed, in the order of the file; of a recipe without data sets
        the first."""
        if not self.job.recipe.data:
            return read_questions(self.questions, self.job.format, self.sample, self.model)
        questions = draw_questions(_usable(self.questions, self.source), self.sample, self.job.execution.seed)
        return QuestionSet(self.questions, questions, limit=self.sample, fingerprint=fingerprint(questions))

    def to_learn_from(self, spec: str, limit: int | None, source: Resource | None = None) -> list[Question]:
        """Questions with answers, none of which is asked of the part or, where they are of another ``source``, of that."""
        excluded: frozenset[str] = frozenset()
        if spec == self.questions:
            excluded = frozenset(one.id for one in self.sampled_questions().questions)
        elif source is not None and not self.job.rehearse and spec == place(source.questions, self.job):
            excluded = frozenset(one.id for one in draw_questions(_usable(spec, source), self.sample, self.job.execution.seed))
        return draw_questions(
            [one for one in load_questions(spec) if one.answers and one.id not in excluded], limit, self.job.execution.seed
        )


def draw_questions(questions: list[Question], number: int | None, seed: int) -> list[Question]:
    if number is None or number >= len(questions):
        return questions
    chosen = random.Random(seed).sample(range(len(questions)), number)
    return [questions[place] for place in sorted(chosen)]


def parts(job: Job) -> list[Part]:
    """Raises UnknownName for a data set that the recipe has not, InvalidSetting without a folder of data."""
    recipe = job.recipe
    if not recipe.data:
        return [_of_any_questions(job)]
    flags = {"QUESTIONS": job.dataset, "<--format>": job.format, "<--index>": job.index, "<--graph>": job.graph}
    for flag, value in flags.items():
        if value is not None:
            raise InvalidSetting(f"{flag}: got {value!r} with {recipe.name}, which names its own. Leave it out.")
    if job.data is None and not job.rehearse:
        raise InvalidSetting(
            "<--data> is missing: expected the folder with the data sets. `gnothi reproduce "
            f"{recipe.name} --data FOLDER` says what it has to hold; <--rehearse> needs none."
        )
    check_only(job)
    names = [source.name for source in recipe.data]
    chosen = [name for name in names if name in job.only] or names
    return [_part(job, source) for source in recipe.data if source.name in chosen]


def check_only(job: Job) -> None:
    """Raise UnknownName where it names what is no data set and no row of the recipe."""
    known = [*(source.name for source in job.recipe.data), *job.recipe.rows]
    for one in job.only:
        if one not in known:
            raise UnknownName(f"data set or row of {job.recipe.name}", one, known)


def _of_any_questions(job: Job) -> Part:
    """Of a recipe without data sets."""
    study = job.recipe.study
    for flag, value in (("<--data>", job.data), ("<--rehearse>", job.rehearse), ("<--trained>", job.trained)):
        if value:
            raise InvalidSetting(f"{flag}: got it with {study.file}, which has no data sets of a paper. Leave it out.")
    questions = job.dataset or study.dataset
    source = Resource(kind="data", name="", title=questions, home="", get="", licence="", source="", questions=questions)
    model, index, graph = job.model or study.model or LAB, job.index or study.index, job.graph or study.graph
    return Part(job, source, questions, "", job.limit, model, index, graph, study, ())


def _part(job: Job, source: Resource) -> Part:
    recipe, on = job.recipe, job.recipe.on.get(source.name, On())
    study = recipe.study
    if job.rehearse:
        questions, model = on.rehearse or source.rehearse, job.model or LAB
        sample: int | None = job.limit or REHEARSED
        index: str | None = LAB
        graph: str | None = LAB
    else:
        questions, model = place(source.questions, job), job.model or on.model or study.model or LAB
        built = {one.kind: spec for spec, one in _built(job, source.name).items()}
        graph, sample = built.get("graph"), job.limit or recipe.questions
        index = built.get("corpus", graph)
    trainings = tuple(_rehearsed(one) if job.rehearse else one for one in recipe.trainings)
    part = Part(job, source, questions, _training_of(source, job), sample, model, index, graph, study, trainings)
    learnt = {one.name: str(part.learnt(one)) for one in trainings}
    common = {**_own({**study.settings, **on.settings}, job), **(recipe.rehearse if job.rehearse else {})}
    rows = [_row(job, one, source.name) for one in study.variants if source.name not in recipe.rows[one.label].without]
    filled_rows = tuple(replace(one, settings=filled(one.settings, learnt)) for one in rows)
    own = replace(study, variants=filled_rows, dataset=questions, model=None, index=None, graph=None)
    part = replace(part, study=replace(own, settings=filled(common, learnt)))
    run = [one.settings for one in rows if not part.only or one.label in (*part.only, study.full)]
    used = _used(trainings, [common, *run])
    return replace(part, trainings=tuple(replace(one, settings=filled(one.settings, learnt)) for one in used))


def _row(job: Job, variant: Variant, data: str) -> Variant:
    more = job.recipe.rows[variant.label].rehearse if job.rehearse else {}
    return replace(
        variant,
        settings={**_own(variant.settings, job), **more},
        model=None if job.rehearse else variant.model,
        paper=tuple(one for one in variant.paper if one.dataset == data),
    )


def _used(trainings: tuple[Training, ...], settings: Iterable[Mapping[str, Any]]) -> list[Training]:
    """Those that the settings name, and those that these name, which stand before them."""
    named = {name for one in settings for name in _names_in(one)}
    for one in reversed(trainings):
        named |= _names_in(one.settings) if one.name in named else set()
    return [one for one in trainings if one.name in named]


def _names_in(settings: Mapping[str, Any]) -> set[str]:
    return {name for one in settings.values() if isinstance(one, str) for name in _PLACE.findall(one)}


def _own(settings: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """Without what is said of the paper's model where another rehearses."""
    return {key: one for key, one in settings.items() if not (job.rehearse and key.startswith("model."))}


def _rehearsed(training: Training) -> Training:
    """With what its rehearsal changes: flags, the number of questions, settings."""
    change = dict(training.rehearse)
    limit = change.pop("limit", training.limit)
    arguments = {key: change.pop(key, one) for key, one in training.given.items()}
    return replace(training, limit=limit, given=arguments, settings={**training.settings, **change})


def filled(settings: Mapping[str, Any], learnt: Mapping[str, str]) -> dict[str, Any]:
    """With the folders of what is learnt in their places. Raises UnknownName for one that nothing makes."""

    def folder(match: re.Match[str]) -> str:
        if match[1] not in learnt:
            raise UnknownName("training of the recipe", match[1], learnt)
        return learnt[match[1]]

    return {key: _PLACE.sub(folder, one) if isinstance(one, str) else one for key, one in settings.items()}


def place(spec: str, job: Job) -> str:
    """A file in the folder of data, packed or not as it lies there; what stands before it names a data set that reads it."""
    scheme, colon, file = spec.rpartition(":")
    path = (job.data or Path()) / file
    others = (path.with_name(f"{path.name}.gz"), path.with_name(path.name.removesuffix(".gz")))
    return f"{scheme}{colon}{next((one for one in (path, *others) if one.is_file()), path)}"


def _training_of(source: Resource, job: Job) -> str:
    if job.rehearse:
        return source.rehearse_training or source.rehearse
    return place(source.training or source.questions, job)


def _built(job: Job, data: str) -> dict[str, Resource]:
    """The index and the graph for that data set, by the spec that opens them."""
    recipe, on = job.recipe, job.recipe.on.get(data, On())
    named = (("corpus", on.corpus or recipe.corpus), ("graph", on.graph or recipe.study.graph)) if recipe.data else ()
    sources = [resources.find(kind, name) for kind, name in named if name]
    return {f"{'dense:' if one.encoder else ''}{(job.data or Path()) / one.index}": one for one in sources}


def _usable(spec: str, source: Resource) -> list[Question]:
    questions = load_questions(spec)
    return [one for one in questions if one.answers] if source.answerable else questions


def _slug(text: str) -> str:
    return "-".join(re.findall(r"[A-Za-z0-9.]+", text)[-3:]).lower()
