"""Gnothi: retrieval-augmented generation that knows what it knows.

    import gnothi

    with gnothi.open("seakr", model="lab") as rag:
        answer = rag.ask("Who directed The Amber Harbour?")
        print(answer.text, answer.uncertainty, answer.evidence)

``open``, ``evaluate``, ``calibrate``, ``train``, ``serve``, ``load_model``, ``open_index`` and ``build_index`` are what there
is to do; the first three have a twin to await (``aopen``, ``aevaluate``, ``acalibrate``; ``rag.aask``). The types that go in
and come out are here, too, and the errors are in ``gnothi.errors``. Importing this loads no heavy library: names are found when
they are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gnothi.version import __version__

if TYPE_CHECKING:
    from gnothi import errors as errors
    from gnothi import events as events
    from gnothi.api.calibrate import acalibrate as acalibrate
    from gnothi.api.calibrate import calibrate as calibrate
    from gnothi.api.evaluate import Evaluation as Evaluation
    from gnothi.api.evaluate import aevaluate as aevaluate
    from gnothi.api.evaluate import evaluate as evaluate
    from gnothi.api.opening import build_graph as build_graph
    from gnothi.api.opening import build_index as build_index
    from gnothi.api.opening import load_model as load_model
    from gnothi.api.opening import open_graph as open_graph
    from gnothi.api.opening import open_index as open_index
    from gnothi.api.rag import Rag as Rag
    from gnothi.api.rag import aopen as aopen
    from gnothi.api.rag import open as open
    from gnothi.api.serve import serve as serve
    from gnothi.api.train import train as train
    from gnothi.calibration.file import Calibration as Calibration
    from gnothi.errors import GnothiError as GnothiError
    from gnothi.fields import setting as setting
    from gnothi.methods.steps.function_steps import Draft as Draft
    from gnothi.methods.steps.function_steps import Steps as Steps
    from gnothi.methods.steps.of_function import method as method
    from gnothi.models.of_function import from_function as from_function
    from gnothi.models.remote.budget import Budget as Budget
    from gnothi.session.asking import Result as Result
    from gnothi.session.knowledge import Knowledge as Knowledge
    from gnothi.signals.of_function import signal as signal
    from gnothi.types import Answer as Answer
    from gnothi.types import Fact as Fact
    from gnothi.types import Passage as Passage
    from gnothi.types import Question as Question
    from gnothi.types import ScoredPassage as ScoredPassage

_PLACES = {
    "open": "api.rag",
    "aopen": "api.rag",
    "Rag": "api.rag",
    "Result": "session.asking",
    "Knowledge": "session.knowledge",
    "evaluate": "api.evaluate",
    "aevaluate": "api.evaluate",
    "Evaluation": "api.evaluate",
    "calibrate": "api.calibrate",
    "acalibrate": "api.calibrate",
    "Calibration": "calibration.file",
    "train": "api.train",
    "serve": "api.serve",
    "load_model": "api.opening",
    "open_index": "api.opening",
    "open_graph": "api.opening",
    "build_index": "api.opening",
    "build_graph": "api.opening",
    "method": "methods.steps.of_function",
    "setting": "fields",
    "Steps": "methods.steps.function_steps",
    "Draft": "methods.steps.function_steps",
    "from_function": "models.of_function",
    "signal": "signals.of_function",
    "Budget": "models.remote.budget",
    "Answer": "types",
    "Fact": "types",
    "Passage": "types",
    "Question": "types",
    "ScoredPassage": "types",
    "GnothiError": "errors",
}

__all__ = [*sorted(_PLACES), "__version__", "errors", "events"]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(f"gnothi.{_PLACES[name]}"), name)
    if name in ("errors", "events"):
        return importlib.import_module(f"gnothi.{name}")
    raise AttributeError(f"module 'gnothi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
