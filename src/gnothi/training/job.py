"""What is trained from, with and to, and all that trainings ask ``gnothi.session`` for: names to objects, what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gnothi import __version__, config, methods
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting
from gnothi.methods.given import MODEL_SECTION, method_settings
from gnothi.models import LAB, LAB_FOLDER, ModelSettings
from gnothi.protocols import KnowledgeGraph, LanguageModel, Retriever
from gnothi.runs.journal import EXECUTION, read_config
from gnothi.runs.runner import fingerprint
from gnothi.session import fingerprints, resources
from gnothi.session.fingerprints import Named
from gnothi.training.finetuning import Origin
from gnothi.training.watch import Watch
from gnothi.types import Question

S = TypeVar("S")
R = TypeVar("R", LanguageModel, Retriever, KnowledgeGraph)
Data = str | Sequence[Question]
"""A data set, a file, or questions."""

# --- what is given -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """What to train from, and where to: ``data`` to ``out``, a folder.

    ``model``, ``index`` and ``graph`` are names; the last two are the laboratory's with the laboratory's model. ``findings`` is
    a folder for what is found out first, which several trainings may share (None: in ``out``); with ``collect_only`` that is
    all.
    Raises InvalidSetting for the laboratory's test questions.
    """

    data: Data
    out: Path
    settings: Settings | Mapping[str, object] = field(default_factory=Settings)
    model: str = LAB
    index: str | None = None
    graph: str | None = None
    findings: Path | None = None
    collect_only: bool = False
    format: str | None = None
    limit: int | None = None
    concurrency: int = 256
    max_failures: int | None = None

    def __post_init__(self) -> None:
        refuse_test_questions(self.name)

    @property
    def name(self) -> str:
        """What the questions are called."""
        return self.data if isinstance(self.data, str) else "questions"

    @property
    def given(self) -> Settings:
        if isinstance(self.settings, Settings):
            return self.settings
        return Settings({key: Given(value, "settings") for key, value in self.settings.items()})

    def settings_as(self, kind: type[S], name: str) -> S:
        """The settings of the thing that is trained. Raises UnknownName or InvalidSetting."""
        return config.build(kind, self.given.plain({MODEL_SECTION, *methods.names()}), name)

    def or_lab(self, spec: str | None, lacking: str) -> str:
        """The spec, or the laboratory's with its model. Raises InvalidSetting, which says ``lacking``, where there is none."""
        if spec is None and self.model in resources.LAB_MODELS:
            return LAB
        if spec is None:
            raise InvalidSetting(lacking)
        return spec

    def model_settings(self) -> Any:
        return resources.model_settings([self.model], self.given)[self.model]

    def origin(self) -> Origin:
        """The model as one whose weights are trained. Raises InvalidSetting where they are not at hand."""
        settings = self.model_settings()
        if not isinstance(settings, ModelSettings):
            raise InvalidSetting(
                f"model: got {self.model!r}, expected 'lab', a folder or a hub id: a model is trained in this process, by its "
                "weights."
            )
        return Origin(self.model, str(LAB_FOLDER) if self.model == LAB else self.model, settings)

    def questions(self) -> list[Question]:
        """Raises UnknownName or InvalidInput."""
        if isinstance(self.data, str):
            return resources.load_questions(self.data, self.format, self.limit)
        return list(self.data)[: self.limit]


def refuse_test_questions(dataset: str) -> None:
    """Raise InvalidSetting for the laboratory's test questions."""
    name, _, kind = dataset.partition(":")
    if name == LAB:
        instead = f"{resources.LAB_TRAINING}:{kind}" if kind else resources.LAB_TRAINING
        raise InvalidSetting(
            f"got the data set {dataset!r}, whose questions are for testing; expected training questions. Use "
            f"{instead!r}, which asks for none of their facts."
        )


def refuse_test_run(run: Path) -> None:
    """Raise InvalidSetting for a run over the laboratory's test questions, InvalidInput for a folder that is no run."""
    try:
        refuse_test_questions(str(read_config(run).get("dataset.name", "")))
    except InvalidSetting as error:
        raise InvalidSetting(f"{run}: {error}") from None


# --- what is recorded ----------------------------------------------------------------------------------------------


def about_questions(job: Job, questions: Sequence[Question]) -> dict[str, Any]:
    """What anything learnt depends on: the questions, and the model with its settings."""
    return {
        "dataset.name": job.name,
        "dataset.format": job.format,
        "dataset.limit": job.limit,
        "dataset.questions": len(questions),
        "dataset.fingerprint": fingerprint(questions),
        "model.name": job.model,
        **resources.recorded_settings([job.model], job.given),
        **fingerprints.fingerprints({"model.name": (LanguageModel, job.model)}),
        f"{EXECUTION}gnothi": __version__,
    }


def about_sources(**sources: Named) -> dict[str, Any]:
    """Where things are looked up."""
    return {key: spec for key, (_, spec) in sources.items()} | fingerprints.fingerprints(sources)


def about_settings(prefix: str, settings: object, without: str = "") -> dict[str, Any]:
    """All of them, ``without`` those of a section."""
    found = config.resolved(settings)
    return {f"{prefix}.{key}": value for key, value in found.items() if key.partition(".")[0] != without}


def about_method(name: str, given: Settings) -> dict[str, Any]:
    """Every setting of the method with its value, and what they name. Raises UnknownName or InvalidSetting."""
    known = methods.settings_of(name)
    own = config.check(method_settings([name], given)[name], known, f"method {name}")
    values = {key: own.get(key, setting.default) for key, setting in known.items()}
    resolved = {f"method.{name}.{key}": value for key, value in values.items()}
    return {"methods": [name], **resolved, **fingerprints.fingerprints(fingerprints.named_by([name], given))}


# --- what is opened ------------------------------------------------------------------------------------------------


class Sources:
    """What a job names, opened when it is asked for, the model once, and closed together."""

    def __init__(self, job: Job, watch: Watch, opened: AsyncExitStack) -> None:
        self._job, self.watch, self._opened = job, watch, opened
        self._model: LanguageModel | None = None

    def model(self) -> LanguageModel:
        if self._model is None:
            spec, settings = self._job.model, self._job.model_settings()
            self._model = self._keep(f"model {spec}", lambda: resources.open_model(spec, settings))
        return self._model

    def index(self, spec: str) -> Retriever:
        return self._keep(f"index {spec}", lambda: resources.open_index(spec))

    def graph(self, spec: str) -> KnowledgeGraph:
        return self._keep(f"graph {spec}", lambda: resources.open_graph(spec))

    async def method(self, name: str, given: Settings) -> Any:
        """With settings of its own, over resources of its own."""
        job = self._job
        with self.watch.waiting(f"opening model {job.model} ..."):
            opening = resources.open_methods(job.model, job.index, given, [name], job.graph)
            return (await self._opened.enter_async_context(opening))[name]

    def _keep(self, what: str, opening: Callable[[], R]) -> R:
        with self.watch.waiting(f"opening {what} ..."):
            found = opening()
        self._opened.push_async_callback(found.aclose)
        return found
