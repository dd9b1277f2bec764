"""From what a user names to what a method needs: models, indexes, methods with their settings, questions.

Names and settings are checked before anything heavy is opened, so that a typing error costs no time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from gnothi import config
from gnothi.config import Given, Settings
from gnothi.errors import InvalidSetting
from gnothi.protocols import LanguageModel, Method, Retriever
from gnothi.types import Question

if TYPE_CHECKING:
    from gnothi.models.settings import CallCache

LAB = "lab"
MODEL_SECTION = "model"
LAB_QUESTIONS = 500
_SECRET = re.compile("key|token|secret|password", re.IGNORECASE)


MODEL_SPECS = {
    LAB: "the laboratory's small model, which comes with the package and knows part of an invented world",
    "PATH": "a folder with a model in transformers format",
    "HUB-ID": "a causal language model of the Hugging Face hub, as in Qwen/Qwen3-1.7B",
    "openai:NAME": "a model behind an OpenAI-compatible API: OpenAI, vLLM, llama.cpp, Ollama (docs/remote-models.md)",
}


@dataclass(frozen=True)
class Resources:
    """What the methods of one command share. ``retriever`` is None where no index was named and none is the default."""

    model: LanguageModel
    retriever: Retriever | None
    settings: Settings
    methods: tuple[str, ...]

    def method(self, name: str) -> Method:
        """The method of that name with its settings. Raises UnknownName, InvalidSetting or MissingCapability."""
        from gnothi import methods

        given = method_settings([*self.methods, name], self.settings)[name]
        return methods.create(name, {"model": self.model, "retriever": self.retriever}, given)


@contextlib.asynccontextmanager
async def open_resources(
    model_spec: str, index_spec: str | None, settings: Settings, methods: Sequence[str]
) -> AsyncIterator[Resources]:
    """Open model and index for ``methods``, and close them at the end; names and settings are checked first.

    ``index_spec`` None is the lab's corpus for the lab model and no index for any other.
    """
    method_settings(methods, settings)
    model_settings(model_spec, settings)
    async with contextlib.AsyncExitStack() as stack:
        spec = index_spec or (LAB if model_spec == LAB else None)
        if spec is None:
            check_no_retriever(methods)
        retriever = open_index(spec) if spec else None
        if retriever is not None:
            stack.push_async_callback(retriever.aclose)
        model = open_model(model_spec, settings)
        stack.push_async_callback(model.aclose)
        yield Resources(model, retriever, settings, tuple(methods))


def open_model(spec: str, settings: Settings) -> LanguageModel:
    """The model of a spec, its calls seeded and traced. Raises ModelUnavailable, MissingDependency or InvalidSetting."""
    from gnothi import models

    return models.load_model(spec, model_settings(spec, settings))


def model_settings(spec: str, settings: Settings) -> CallCache:
    """What was given under ``model.``, for a model of this kind. Raises UnknownName or InvalidSetting."""
    from gnothi.models import settings_class

    given, known = settings.section(MODEL_SECTION), settings_class(spec)
    for key in given.keys() - config.settings_of(known).keys():
        if _SECRET.search(key):  # the usual message would show it
            raise InvalidSetting(
                f"setting 'model.{key}': there is none of that name, and no setting takes a secret, since runs record them. "
                "A key for an API is taken from the environment variable OPENAI_API_KEY."
            )
    return config.build(known, given, MODEL_SECTION)


def recorded_settings(spec: str, settings: Settings) -> dict[str, Any]:
    """What a run records of the model's settings: those given, and where a model behind an API is asked. Settings that results
    do not depend on stand under ``execution.``. Raises as ``model_settings``."""
    from gnothi.evaluation.run_folder import EXECUTION
    from gnothi.models import RemoteSettings

    built = model_settings(spec, settings)
    free = {item.name for item in fields(built) if item.metadata.get("execution")}
    recorded = {
        f"{EXECUTION if key in free else ''}{MODEL_SECTION}.settings.{key}": given.value
        for key, given in settings.section(MODEL_SECTION).items()
    }
    if isinstance(built, RemoteSettings):
        recorded[f"{MODEL_SECTION}.settings.base_url"] = built.located().base_url
    return recorded


def open_index(spec: str) -> Retriever:
    """The retriever of a spec, its searches traced. Raises IndexUnavailable."""
    from gnothi import retrieval
    from gnothi.retrieval.wrappers import Traced

    if spec == LAB:
        from gnothi import lab
        from gnothi.retrieval.bm25 import BM25Index

        return Traced(BM25Index.in_memory(lab.passages(), LAB))
    return Traced(retrieval.open_index(spec))


def load_questions(spec: str, format: str | None = None, limit: int | None = None) -> list[Question]:
    """The first ``limit`` questions of a data set or file. Raises UnknownName or InvalidInput."""
    from gnothi import datasets

    return datasets.load(spec, format, limit, named_datasets(limit))


def named_datasets(limit: int | None = None) -> Mapping[str, Callable[[], list[Question]]]:
    """Data sets that need no file. They are made on the spot, so at least ``limit`` questions are."""
    from gnothi.lab import KINDS

    count = max(limit or 0, LAB_QUESTIONS)
    return {LAB: partial(_lab_questions, None, count)} | {
        f"{LAB}:{kind}": partial(_lab_questions, kind, count) for kind in KINDS
    }


def dataset_summaries() -> dict[str, str]:
    """Names and what they hold, for listings."""
    from gnothi.lab.questions import DEFAULT_MIX

    mix = ", ".join(f"{share:.0%} {kind}" for kind, share in DEFAULT_MIX.items())
    kinds = {f"{LAB}:{kind}": f"{LAB_QUESTIONS} questions of the kind {kind}" for kind in DEFAULT_MIX}
    return {LAB: f"{LAB_QUESTIONS} questions about the laboratory's world: {mix} (more with --limit)"} | kinds


def _lab_questions(kind: Any, count: int) -> list[Question]:
    from gnothi import lab

    return lab.questions(lab.world(), kind, count)


def method_settings(names: Sequence[str], settings: Settings) -> dict[str, dict[str, Given]]:
    """What was given to each method: plain keys that it has, and those under its name (``seakr.threshold``).

    A plain key must be a setting of at least one of ``names``. Sections of methods that do not take part are left alone, so
    that one file serves many runs. Raises UnknownName (for names and settings) and InvalidSetting.
    """
    from gnothi import methods

    known = {name: config.settings_of(methods.find(name)) for name in names}
    sections = {MODEL_SECTION, *methods.names()}
    plain = settings.plain(sections)
    union = {key: setting for one in known.values() for key, setting in one.items()}
    config.check(plain, union, " and ".join(names) or "no method")
    chosen = {
        name: {key: value for key, value in plain.items() if key in one} | settings.section(name) for name, one in known.items()
    }
    for name, given in chosen.items():
        config.check(given, known[name], name)
    return chosen


def check_no_retriever(names: Sequence[str]) -> None:
    """Raises InvalidSetting for the first method that cannot do without a retriever."""
    from gnothi import methods

    for name in names:
        required = {item.name for item in fields(cast("Any", methods.find(name))) if item.default is MISSING}
        if "retriever" in required:
            raise InvalidSetting(
                f"method {name!r} looks for evidence and got no index: give --index PATH (built with `gnothi index build`)."
            )
