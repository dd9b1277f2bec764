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
from tests.messages import refused

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


MISUSES: dict[str, Callable[[Path], object]] = {
    "a question of another type": asked(3),
    "a list of questions": asked([KNOWN]),
    "a blank question": asked("  "),
    "choices as one text": asked(KNOWN, choices="yes"),
    "an unknown method": opened("seeker"),
    "a method that is a number": opened(7),
    "a class that is no method": opened(Unfinished),
    "a misspelt resource": opened("rag", retreiver="x"),
    "a resource by another word": opened("rag", llm="x"),
    "a misspelt parameter": opened("rag", calibraton="x"),
    "a misspelt setting": opened("seakr", treshold=1),
    "a setting of another method": opened("rag", strategy="both"),
    "a setting of the wrong type": opened("rag", k="many"),
    "a setting out of range": opened("rag", k=0),
    "a model setting that there is not": opened("direct", model="lab", model_settings={"devise": "cpu"}),
    "a model that is a number": opened("direct", model=5),
    "a model as a class": opened("direct", model=Scripted),
    "an index that cannot search": opened("rag", index=Unfinished()),
    "no index": opened("rag", model=OTHER),
    "an index that is not there": opened("rag", index="./nowhere"),
    "a model that is not there": opened("direct", model="./nowhere"),
    "a missing probe": opened("seakr", signal="probe"),
    "a signal that is no signal": opened("seakr", signal=object()),
    "a judge that is no model": opened("keqa", index="lab", judge=Unfinished()),
    "a calibration that is not there": opened("seakr", calibration="no.toml"),
    "a calibration of another type": opened("seakr", calibration=3),
    "a closed object asked": closed(lambda rag, _: rag.ask(KNOWN)),
    "a closed object streamed": closed(lambda rag, _: rag.stream(KNOWN)),
    "a closed object evaluated": closed(lambda rag, to: gnothi.evaluate("lab", rag, to / "run")),
    "a closed object calibrated": closed(lambda rag, _: gnothi.calibrate(rag, "lab")),
    "asked inside a running loop": in_a_loop(lambda rag, _: rag.ask(KNOWN)),
    "streamed inside a running loop": in_a_loop(lambda rag, _: rag.stream(KNOWN)),
    "evaluated inside a running loop": in_a_loop(lambda rag, to: gnothi.evaluate("lab", rag, to / "run")),
    "an unknown data set": run_of("lap", "direct"),
    "no methods": run_of("lab", []),
    "no questions": run_of([], "direct"),
    "questions that are texts": run_of([KNOWN], "direct"),
    "two questions of one id": run_of([gnothi.Question("1", "a"), gnothi.Question("1", "b")], "direct"),
    "a folder that is a number": lambda _: gnothi.evaluate("lab", "direct", 3, model=MODEL),  # type: ignore[arg-type]
    "several processes and an object": run_of("lab", "direct", workers=2),
    "two models in one run": two_models,
    "a method twice in one run": twice,
    "a method without a gate calibrated": lambda _: gnothi.calibrate("direct", "lab", limit=30, model=MODEL),
}


def test_there_are_25_at_least() -> None:
    assert len(MISUSES) >= 25


@pytest.mark.parametrize("name", MISUSES)
def test_one_clear_sentence(name: str, tmp_path: Path) -> None:
    with refused(GnothiError) as raised:
        MISUSES[name](tmp_path)
    said = str(raised.value)
    assert "--" not in re.sub("`[^`]*`", "", said), said  # flags are the command line's
    assert said.endswith((".", "?")), said
    assert len(said) < 700, said
