"""From what a Python caller gives (names, objects, keywords) to a request, with the nearest name for what is misspelt."""

from __future__ import annotations

import asyncio
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi import methods
from gnothi.calibration.file import read
from gnothi.config import Settings, flatten, load_toml, read_settings
from gnothi.errors import InvalidInput, InvalidSetting, UnknownName, UsageError
from gnothi.methods.planned import INDEX_SECTION, MODEL_SECTION
from gnothi.models.remote.budget import Budget
from gnothi.retrieval.filters import as_filters
from gnothi.session.plan import Request, check_questions
from gnothi.session.record import as_arguments, as_settings
from gnothi.types import Question

QUESTION_ID = "ask"
"""Of a question that is only a text, as on the command line: the same question gets the same answer."""
_OTHER_WORDS = {"retriever": "index", "search": "index", "llm": "model", "language_model": "model", "knowledge_graph": "graph"}


def settings_of(args: Mapping[str, Any]) -> Settings:
    """The arguments ``settings``, ``model_settings``, ``index_settings`` and ``filters``, above the file ``config``, which may
    be a run's. Settings under a method's name, and of signals, have a dot, or stand in a mapping of their own
    (``{"seakr.threshold": -3}``, ``{"signal": {"name": "gram", "samples": 5}}``). ``Settings`` are all of them, the file's
    included."""
    settings, config, filters = args.get("settings") or {}, args.get("config"), args.get("filters")
    if isinstance(settings, Settings):
        return settings
    before = read_settings(Path(config), repeated=as_settings) if config is not None else Settings()
    named = flatten(settings)
    for section, argument in ((MODEL_SECTION, "model_settings"), (INDEX_SECTION, "index_settings")):
        named |= {f"{section}.{key}": value for key, value in (args.get(argument) or {}).items()}
    if filters is not None:
        named[f"{INDEX_SECTION}.filters"] = [str(one) for one in as_filters(filters)]
    return Settings({**before.given, **Settings.of(named).given})


def repeated(config: str | os.PathLike[str] | None) -> dict[str, Any]:
    """What a run's ``config.toml`` says of data set, model, index, graph, seed and methods."""
    return as_arguments(load_toml(Path(config))) if config is not None else {}


def check_keywords(settings: Mapping[str, Any], method: str, parameters: Iterable[str]) -> None:
    """Raise UnknownName for a keyword that is no setting of the method and no parameter; the nearest is named."""
    known = methods.spec(method).settings
    for key in flatten(settings):
        plain = key.removeprefix(f"{method}.")
        if plain not in known:
            valid = [*known, *parameters]
            meant = difflib.get_close_matches(key, [*_OTHER_WORDS, *valid], n=1)
            if meant and meant[0] in _OTHER_WORDS:
                instead = _OTHER_WORDS[meant[0]]
                raise InvalidSetting(f"unknown keyword: got {key!r}. Did you mean {instead!r}?")
            raise UnknownName(f"keyword (a setting of {method}, or a parameter)", key, valid)


def as_question(question: object, choices: Sequence[str] = ()) -> Question:
    """A text as a question. Raises InvalidInput for anything else, and for a blank text."""
    if isinstance(question, Question):
        return question
    if not isinstance(question, str):
        raise InvalidInput(f"question: got {question!r:.80}, expected a text or a gnothi.Question.")
    if not question.strip():
        raise InvalidInput("question: got an empty text, expected a question.")
    if isinstance(choices, str):
        raise InvalidInput(f"choices: got the text {choices!r:.60}, expected a list of texts.")
    if any(not isinstance(one, str) or not one.strip() for one in choices) or len(set(choices)) < len(choices):
        raise InvalidInput(f"choices: got {choices!r:.80}, expected different texts, none of them empty.")
    return Question(QUESTION_ID, question.strip(), choices=tuple(choices))


def as_path(value: object, name: str) -> Path:
    """Raises InvalidInput for what is no path."""
    if isinstance(value, str | os.PathLike):
        return Path(value)
    raise InvalidInput(f"{name}: got {value!r:.80}, expected a path.")


def request_of(args: Mapping[str, Any], methods: Sequence[str] | None) -> Request:
    """What the arguments that ``gnothi.open``, ``evaluate`` and ``serve`` share ask for; a ``config`` of a run says what they
    leave out of model, index and graph. Raises InvalidInput."""
    settings, budget, before = settings_of(args), args["budget"] or Budget(), repeated(args.get("config"))
    model, index, graph = (args[key] if args[key] is not None else before.get(key) for key in ("model", "index", "graph"))
    return Request(
        methods=methods,
        model=model,
        index=as_spec(index),
        graph=as_spec(graph),
        settings=settings,
        calibration=None if args["calibration"] is None else read(args["calibration"]),
        ignore_mismatch=args["ignore_mismatch"],
        max_cost=budget.max_cost,
        max_tokens=budget.max_tokens,
    )


def as_spec(source: Any) -> Any:
    """A name or a folder as text; an object as it is."""
    return os.fspath(source) if isinstance(source, os.PathLike) else source


def as_data(source: Any) -> Any:
    """Questions, or the name of a data set or file; a list of texts is neither."""
    if not isinstance(source, str | os.PathLike):
        check_questions(source)
    return as_spec(source)


def refuse_running_loop(called: str, instead: str, how: str = "await") -> None:
    """Raise UsageError where a synchronous call would block the event loop that it is made in."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(f"{called} was called inside a running event loop, which it would block. Use `{how} {instead}` there.")
