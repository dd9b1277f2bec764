"""Methods, signals, models and searches that are functions: each its own, whatever bears its name; noticed where it changes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import gnothi
from gnothi.errors import BrokenPlugin, InvalidSetting, MissingCapability, TooManyFailures, UnknownName, sentence
from gnothi.own_code import digest
from gnothi.runs.folder import read_config
from gnothi.signals.registry import within
from gnothi.types import Capabilities, Question
from tests.messages import refused

QUESTIONS = [Question("q1", "Where?", answers=("bread",)), Question("q2", "When?", answers=("bread",))]
MODULE = """
import gnothi

WORD = "bread"


def helper(text):
    return text + WORD


async def baked(steps, question, k: int = 2):
    return helper(str(k))


def doubt(question, answers):
    return float(len(answers))


def model(text):
    return helper(text)


def index(query, k):
    return [helper(query)]
"""
Written = Callable[[str], Any]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """A module ``of_mine`` of that source, imported anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(source: str) -> Any:
        (tmp_path / "of_mine.py").write_text(source)
        sys.modules.pop("of_mine", None)
        importlib.invalidate_caches()
        return importlib.import_module("of_mine")

    yield write
    sys.modules.pop("of_mine", None)


def constant(value: float) -> Callable[[str, Sequence[str]], float]:
    return lambda *_: value


def test_signals_of_one_name_measure_each_its_own() -> None:
    def opened(value: float) -> gnothi.Rag:
        keys: Any = {"signal": constant(value), "signal.samples": 2, "threshold": 0.5}
        return gnothi.open("seakr", model=lambda _: "bread", index=lambda _, k: ["soup"] * k, **keys)

    with opened(0.25) as low, opened(0.75) as high:
        for rag, score in ((low, 0.25), (high, 0.75), (low, 0.25)):
            assert rag.ask("Where?").decisions[0].score == score
    with pytest.raises(MissingCapability) as told:  # nobody can type the name of a lambda
        gnothi.open("seakr", model=lambda _: "", index=lambda *_: [])
    assert "<lambda>" not in str(told.value).replace("model '<lambda>'", "")


def test_a_signal_belongs_to_who_gave_it() -> None:
    """A later panel measures what it did before."""

    def only_mine(question: str, answers: Sequence[str]) -> float:  # noqa: ARG001
        return 1.0

    before = within(Capabilities())
    with gnothi.open("seakr", model=lambda _: "bread", index=lambda *_: ["bread"], signal=only_mine, threshold=0.5) as rag:
        assert rag.ask("Where?").decisions[0].signal == "only_mine"
    assert within(Capabilities()) == before


def test_methods_of_one_name_answer_each_by_itself_but_not_in_one_run(tmp_path: Path) -> None:
    def named(text: str, default: int) -> Any:
        async def same(_: Any, __: Any, k: int = default) -> str:
            return f"{text} {k}"

        return same

    given: Any = {"model": lambda _: "", "index": lambda *_: []}
    with gnothi.open(named("one", 1), **given) as one, gnothi.open(named("two", 2), **given) as two:
        assert [rag.ask("Where?").text for rag in (one, two, one)] == ["one 1", "two 2", "one 1"]
    with refused(InvalidSetting):
        gnothi.evaluate(QUESTIONS, [named("one", 1), named("two", 2)], tmp_path / "run", **given)


PARTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "method": lambda of: {"methods": of.baked},
    "signal": lambda of: {"methods": "seakr", "settings": {"signal": of.doubt, "threshold": 1.0}},
    "model": lambda of: {"methods": "direct", "model": of.model},
    "index": lambda of: {"methods": "rag", "index": of.index},
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("before", "after"), [('"bread"', '"cake"'), ("float(len", "2 * float(len"), ("text +", "text + text +")]
)
def test_a_run_goes_on_with_the_same_code_alone(written: Written, tmp_path: Path, part: str, before: str, after: str) -> None:
    def evaluate(source: str) -> None:
        given = {"model": lambda _: "bread", "index": lambda _, k: ["soup"] * k, **PARTS[part](written(source))}
        gnothi.evaluate(QUESTIONS, out=tmp_path / "run", **given)

    evaluate(MODULE)
    evaluate(MODULE + "\n\ndef another():\n    return 5\n")
    if (part == "signal") is not ("len" in before):  # what it does not use
        evaluate(MODULE.replace(before, after))
    else:
        with refused(InvalidSetting):
            evaluate(MODULE.replace(before, after))


def test_a_run_is_repeated_by_where_its_code_stands(written: Written, tmp_path: Path) -> None:
    written(MODULE)
    given: Any = {"model": lambda _: "bread", "index": lambda _, k: ["soup"] * k}
    settings = {"signal": "of_mine:doubt", "baked.k": 7}
    gnothi.evaluate(QUESTIONS, ["of_mine:baked", "rag"], tmp_path / "first", settings=settings, **given)
    config = read_config(tmp_path / "first")
    assert config["methods"] == ["baked", "rag"]
    assert config["objects.methods.baked"] == "of_mine:baked"
    from gnothi.session.record import as_arguments, as_settings

    repeated = as_settings(config)
    assert repeated is not None
    assert as_arguments(config)["methods"] == ["of_mine:baked", "rag"]
    assert (repeated["rag.signal"], repeated["baked.k"]) == ("of_mine:doubt", 7)


@pytest.mark.parametrize("named", ["of_mine:nothing", "nowhere:nothing", "of_mine:", ":doubt", "of_mine:WORD"])
def test_what_is_not_there_is_said(written: Written, named: str) -> None:
    written(MODULE)
    cases: list[dict[str, Any]] = [{"method": named}, {"method": "rag", "signal": named}]
    for given in cases:
        with pytest.raises((BrokenPlugin, InvalidSetting, UnknownName)):
            gnothi.open(model=lambda _: "", index=lambda *_: [], **given)


@pytest.mark.slow
def test_other_processes_import_it(written: Written, tmp_path: Path) -> None:
    written(MODULE)
    found = gnothi.evaluate("lab", "of_mine:baked", tmp_path / "run", limit=2, workers=2)
    assert [row.answer for row in found.rows] == ["2bread"] * 2

    async def local(_: Any, __: Any) -> str:
        return ""

    with refused(InvalidSetting):
        gnothi.evaluate("lab", local, tmp_path / "local", limit=2, workers=2)


def test_the_digest_tells_closures_and_defaults_apart() -> None:
    def of(value: float, more: int = 0) -> Any:
        def inner(_: str, n: int = more) -> float:
            return value * n

        return inner

    assert len({digest(of(1.0)), digest(of(2.0)), digest(of(1.0, 1)), digest(of(1.0))}) == 3
    assert digest(max) == digest(gnothi.open) == ""

    def forever(n: int) -> int:
        return forever(n - 1)

    assert digest(forever) == digest(forever)


BROKEN = """
import gnothi


def broken():
    raise ValueError("no oven")


async def baked(steps, question):
    if question.id == "q2":
        broken()
    return "bread"


async def reading(steps, question):
    return await steps.read(question, await steps.search(question, 1))


def index(query, k):
    broken()


def model(text):
    broken()


@gnothi.signal
def doubt(question, answers):
    broken()


async def doubting(steps, question):
    return (await steps.draft(question, signal=doubt)).text
"""


@pytest.mark.parametrize("part", ["method", "retriever", "model", "signal"])
def test_a_run_says_where_own_code_raised(written: Written, tmp_path: Path, part: str) -> None:
    code = written(BROKEN)
    method = {"retriever": code.reading, "signal": code.doubting}.get(part, code.baked)
    given: dict[str, Any] = {"model": code.model if part == "model" else lambda _: "bread", "index": code.index}
    if part == "model":
        method = "direct"
    run = gnothi.evaluate(QUESTIONS, method, tmp_path / "run", **given)
    (error,) = {tuple(row.error.items()) for row in run.rows if row.error}
    assert dict(error) | {"where": ""} == {"type": "ValueError", "message": "no oven", "where": ""}
    where = dict(error)["where"]
    assert (where.startswith(str(tmp_path / "of_mine.py")), where.endswith("line 6")) == (True, True)
    assert any(f"ValueError: no oven (in {where})." in warning for warning in run.warnings)
    with refused(TooManyFailures, varies=r"(?<=last one \()q\d"):
        gnothi.evaluate(QUESTIONS, method, tmp_path / "stopped", max_failures=0, **given)


HELPERS = """
import of_mine_helpers

WORD = "bread"


def bake(text):
    return text + WORD


def unused():
    return 1
"""
USING = {
    "from of_mine_helpers import bake": "bake(str(k))",
    "import of_mine_helpers": "of_mine_helpers.bake(str(k))",
    "import of_mine_helpers as helpers": "helpers.of_mine_helpers.bake(str(k))",
}


@pytest.mark.parametrize("imported", USING)
def test_helpers_in_other_modules_count(written: Written, tmp_path: Path, imported: str) -> None:
    def digest_with(helpers: str) -> str:
        (tmp_path / "of_mine_helpers.py").write_text(helpers)
        sys.modules.pop("of_mine_helpers", None)
        source = f"{imported}\n\nasync def baked(steps, question, k: int = 2):\n    return {USING[imported]}\n"
        return digest(written(source).baked)

    before = digest_with(HELPERS)
    assert digest_with(HELPERS.replace("return 1", "return 2")) == before
    assert digest_with(HELPERS.replace("text + WORD", "text + text")) != before
    assert digest_with(HELPERS.replace('"bread"', '"cake"')) != before


@pytest.mark.parametrize(("said", "ends"), [("no oven", "no oven."), ("no oven.", "no oven."), ("no?\n", "no?\n"), ("", ".")])
def test_what_others_wrote_ends_before_a_sentence_of_ours(said: str, ends: str) -> None:
    assert sentence(said) == ends
