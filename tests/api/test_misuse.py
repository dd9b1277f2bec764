"""One clear sentence for each way to use the Python interface wrongly."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.errors import GnothiError
from gnothi.testing.model import Scripted
from tests.command_line import KNOWN, script

MODEL = Scripted(script, name="lab")
OTHER = Scripted(script, name="other")


class Unfinished:
    name = "unfinished"

    def search(self, query: str) -> None: ...


def asked(question: Any, **more: Any) -> Callable[[Path], object]:
    def ask(_: Path) -> object:
        with gnothi.open("direct", model=MODEL) as rag:
            return rag.ask(question, **more)

    return ask


def opened(*given: Any, **more: Any) -> Callable[[Path], object]:
    return lambda _: gnothi.open(*given, **{"model": MODEL, **more})


def closed(use: Callable[[gnothi.Rag, Path], object]) -> Callable[[Path], object]:
    def after(folder: Path) -> object:
        rag = gnothi.open("direct", model=MODEL)
        rag.close()
        return use(rag, folder)

    return after


def in_a_loop(use: Callable[[gnothi.Rag, Path], object]) -> Callable[[Path], object]:
    def inside(folder: Path) -> object:
        async def calling() -> object:
            async with await gnothi.aopen("direct", model=MODEL) as rag:
                return use(rag, folder)

        return asyncio.run(calling())

    return inside


def run_of(data: Any, methods: Any, **more: Any) -> Callable[[Path], object]:
    return lambda folder: gnothi.evaluate(data, methods, folder / "run", **{"model": MODEL, **more})


def two_models(folder: Path) -> object:
    with gnothi.open("direct", model=MODEL) as one, gnothi.open("cot", model=OTHER) as two:
        return gnothi.evaluate("lab", [one, two], folder / "run")


def twice(folder: Path) -> object:
    with gnothi.open("direct", model=MODEL) as one:
        return gnothi.evaluate("lab", ["direct", one], folder / "run")


MISUSES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a question of another type": (asked(3), r"question: got 3, expected a text or a gnothi\.Question"),
    "a list of questions": (asked([KNOWN]), r"question: got \['Who wrote"),
    "a blank question": (asked("  "), r"question: got an empty text"),
    "choices as one text": (asked(KNOWN, choices="yes"), r"choices: got the text 'yes', expected a list"),
    "an unknown method": (opened("seeker"), r"unknown method: got 'seeker'\. Did you mean 'seakr'\?"),
    "a method that is a number": (opened(7), r"method: got 7, expected a name"),
    "a class that is no method": (opened(Unfinished), r"method: got <class .*Unfinished.*, expected a name"),
    "a misspelt resource": (opened("rag", retreiver="x"), r"unknown keyword: got 'retreiver'\. Did you mean 'index'\?"),
    "a resource by another word": (opened("rag", llm="x"), r"unknown keyword: got 'llm'\. Did you mean 'model'\?"),
    "a misspelt parameter": (opened("rag", calibraton="x"), r"got 'calibraton'\. Did you mean 'calibration'\?"),
    "a misspelt setting": (opened("seakr", treshold=1), r"got 'treshold'\. Did you mean 'threshold'\?"),
    "a setting of another method": (opened("rag", strategy="both"), r"unknown keyword .*got 'strategy'"),
    "a setting of the wrong type": (opened("rag", k="many"), r"setting 'k': got 'many' .*expected a whole number"),
    "a setting out of range": (opened("rag", k=0), r"setting 'k': got 0, expected at least 1"),
    "a model setting that there is not": (
        opened("direct", model="lab", model_settings={"devise": "cpu"}),
        r"got 'devise'.*Did you mean 'device'\?",
    ),
    "a model that is a number": (opened("direct", model=5), r"model: got an object of the class int"),
    "a model as a class": (opened("direct", model=Scripted), r"model: got the class Scripted, expected a name, a function"),
    "an index that cannot search": (opened("rag", index=Unfinished()), r"index: got an object of the class Unfinished"),
    "no index": (opened("rag", model=OTHER), r"method 'rag' looks for evidence and got no index: give index=PATH"),
    "an index that is not there": (opened("rag", index="./nowhere"), r"nowhere"),
    "a model that is not there": (opened("direct", model="./nowhere"), r"cannot load model"),
    "a missing probe": (opened("seakr", signal="probe"), r"signal.*'probe'.*but no probe\. Give one with signal\.probe=FOLDER"),
    "a signal that is no signal": (opened("seakr", signal=object()), r"signal"),
    "a judge that is no model": (
        opened("keqa", index="lab", judge=Unfinished()),
        r"judge: got an object of the class Unf",
    ),
    "a calibration that is not there": (opened("seakr", calibration="no.toml"), r"cannot read the calibration no\.toml"),
    "a calibration of another type": (opened("seakr", calibration=3), r"calibration: got 3, expected a file"),
    "a closed object asked": (closed(lambda rag, _: rag.ask(KNOWN)), r"this gnothi\.Rag \(direct\) is closed: open another"),
    "a closed object streamed": (closed(lambda rag, _: rag.stream(KNOWN)), r"is closed: open another"),
    "a closed object evaluated": (closed(lambda rag, to: gnothi.evaluate("lab", rag, to / "run")), r"is closed: open another"),
    "a closed object calibrated": (closed(lambda rag, _: gnothi.calibrate(rag, "lab")), r"is closed: open another"),
    "asked inside a running loop": (
        in_a_loop(lambda rag, _: rag.ask(KNOWN)),
        r"ask\(\) was called inside a running event loop, which it would block\. Use `await rag\.aask\(question\)`",
    ),
    "streamed inside a running loop": (in_a_loop(lambda rag, _: rag.stream(KNOWN)), r"rag\.astream\(question\)"),
    "evaluated inside a running loop": (
        in_a_loop(lambda rag, to: gnothi.evaluate("lab", rag, to / "run")),
        r"await gnothi\.aevaluate",
    ),
    "an unknown data set": (run_of("lap", "direct"), r"unknown data set: got 'lap'"),
    "no methods": (run_of("lab", []), r"methods: got none, expected at least one"),
    "no questions": (run_of([], "direct"), r"questions: got an empty list"),
    "questions that are texts": (run_of([KNOWN], "direct"), r"questions: got 'Who wrote.* among them, expected objects of the"),
    "two questions of one id": (
        run_of([gnothi.Question("1", "a"), gnothi.Question("1", "b")], "direct"),
        r"questions: got the id '1' more than once",
    ),
    "a folder that is a number": (lambda _: gnothi.evaluate("lab", "direct", 3, model=MODEL), r"out: got 3, expected a path"),  # type: ignore[arg-type]
    "several processes and an object": (
        run_of("lab", "direct", workers=2),
        r"workers: got 2 with the model 'lab' as",
    ),
    "two models in one run": (two_models, r"has a model and an index of its own, and a run has one of each"),
    "a method twice in one run": (twice, r"got 'direct' twice"),
    "a method without a gate calibrated": (
        lambda _: gnothi.calibrate("direct", "lab", limit=30, model=MODEL),
        r"got 'direct', which has no gate with a threshold",
    ),
}


def test_there_are_25_at_least() -> None:
    assert len(MISUSES) >= 25


@pytest.mark.parametrize("name", MISUSES)
def test_one_clear_sentence(name: str, tmp_path: Path) -> None:
    misuse, told = MISUSES[name]
    with pytest.raises(GnothiError, match=told) as raised:
        misuse(tmp_path)
    said = str(raised.value)
    assert "--" not in re.sub("`[^`]*`", "", said), said  # flags are the command line's
    assert said.endswith((".", "?")), said
    assert len(said) < 700, said
