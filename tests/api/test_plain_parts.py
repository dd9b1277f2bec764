"""Models and retrievers as plain as people have them: functions, a search that is not async, texts for passages."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import Any

import pytest

import gnothi
from gnothi.errors import CodeFailed, InvalidSetting, MissingCapability, ModelUnavailable
from gnothi.protocols import LanguageModel
from gnothi.testing import Scripted
from gnothi.types import Capabilities, Passage, Profile, ScoredPassage
from tests.messages import refused

SOUP = Passage("soup", "On Friday there is lentil soup.", "Canteen")
QUESTION = "What is there on Friday?"


def model(text: str) -> str:
    return "lentil soup\nQuestion: more" if "lentil" in text else "bread"


def plain(_: str, k: int) -> list[Passage]:
    return [SOUP][:k]


class Members:
    """As much of a retriever as many have."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def search(self, query: str, k: int) -> Any:  # noqa: ARG002
        return self._found


class Called:
    def __call__(self, query: str, k: int) -> list[str]:  # noqa: ARG002
        return [SOUP.text][:k]


async def waited(query: str, k: int) -> list[ScoredPassage]:
    await asyncio.sleep(0)
    return [ScoredPassage(one, 2.5) for one in plain(query, k)]


@pytest.mark.parametrize(
    "index",
    [
        plain,
        waited,
        lambda query, k: waited(query, k),
        functools.partial(plain),
        Members([SOUP]),
        Members((SOUP.text,)),
        Members([ScoredPassage(SOUP, 1.0)]),
        Members([{"text": SOUP.text, "title": "Canteen", "id": 7, "score": 2, "floor": 3}]),
        Members([{"text": SOUP.text}, {"text": "Bread.", "id": None}]),
        Called(),
    ],
    ids=["function", "async", "awaitable", "partial", "object", "texts", "scored", "records", "bare records", "callable"],
)
def test_whatever_searches_is_an_index(index: Any) -> None:
    with gnothi.open("rag", model=model, index=index) as rag:
        result = rag.ask(QUESTION)
    assert result.text == "lentil soup"
    assert result.evidence[0].text == SOUP.text
    assert "lentil soup" in repr(result)
    assert "1 search" in str(result)


@pytest.mark.parametrize("found", [None, 3, "text", [3], [("a", 1)], [{"body": "x"}], [{"text": 3}]])
def test_what_is_no_passage_is_told(found: Any) -> None:
    index: Any = Members(found)
    with (
        gnothi.open("rag", model=model, index=index) as rag,
        refused(gnothi.errors.GnothiError),
    ):
        rag.ask(QUESTION)


def test_what_a_function_raises_is_a_sentence() -> None:
    def broken(query: str, k: int) -> list[str]:
        raise ZeroDivisionError(query * k)

    def lost(text: str) -> str:
        raise OSError(text)

    async def forgetful(_: Any, question: Any) -> str:
        raise KeyError(question.id)

    def vague(question: str, answers: Sequence[str]) -> float:
        raise RuntimeError(question + answers[0])

    class Searching:
        name = "of-mine"

        def search(self, query: str, k: int) -> list[str]:
            raise ZeroDivisionError(query * k)

    gated: Any = {"signal": vague, "signal.samples": 2, "threshold": 0.5}
    for cause, given in (
        (ZeroDivisionError, {"method": "rag", "index": broken}),
        (ZeroDivisionError, {"method": "rag", "index": Searching()}),
        (OSError, {"method": "direct", "model": lost}),
        (KeyError, {"method": forgetful, "index": broken}),
        (RuntimeError, {"method": "seakr", "index": broken, **gated}),
    ):
        with gnothi.open(**{"model": model, **given}) as rag, pytest.raises(CodeFailed) as raised:
            rag.ask(QUESTION)
        assert isinstance(raised.value.__cause__, cause)
        assert raised.value.arguments[1] is raised.value.__cause__
        assert __file__ in str(raised.value)
    with gnothi.open("direct", model=lambda _: 3) as rag, refused(ModelUnavailable):
        rag.ask(QUESTION)


def test_nothing_found_is_known_of_the_result() -> None:
    index: Any = Members([])
    with gnothi.open(model=model, index=index) as rag:
        assert rag.method == "rag"
        result = rag.ask(QUESTION)
    assert (result.text, result.found_nothing) == ("bread", True)
    assert "nothing found" in repr(result)
    assert result.as_dict()["found_nothing"] is True


def test_a_function_says_what_it_cannot() -> None:
    async def model_of_mine(text: str) -> str:
        return model(text)

    with refused(MissingCapability):
        gnothi.open("seakr", model=model_of_mine, index=plain)
    with gnothi.open("seakr", model=model_of_mine, index=plain, signal={"name": "consistency", "samples": 3}) as rag:
        assert rag.ask(QUESTION).text == "bread"


class Half:
    name, capabilities, profile = "half", Capabilities(), Profile()

    async def generate(self, prompt: Any, decoding: Any) -> Any: ...


def test_members_that_an_object_lacks_are_named() -> None:
    with refused(InvalidSetting):
        gnothi.open("direct", model=Half())  # type: ignore[arg-type]
    with refused(InvalidSetting):
        gnothi.open("rag", model=model, index=object())  # type: ignore[arg-type]


def test_a_record_keeps_what_it_says() -> None:
    index: Any = Members([{"text": SOUP.text, "title": "Canteen", "id": 7, "score": 2, "floor": 3}])
    with gnothi.open("rag", model=model, index=index) as rag:
        (found,) = rag.search(QUESTION, 1)
    assert (found.passage.id, found.passage.title, found.score) == ("7", "Canteen", 2.0)
    assert dict(found.passage.metadata) == {"floor": 3}


@pytest.mark.parametrize("function", [lambda: "", lambda a, b: "", lambda *, text: ""])  # noqa: ARG005
def test_a_function_of_something_else_is_no_model(function: Any) -> None:
    with refused(InvalidSetting):
        gnothi.from_function(function)
    with refused(InvalidSetting):
        gnothi.open("direct", model=function)
    assert isinstance(gnothi.from_function(model), LanguageModel)


def test_a_model_of_a_function_may_have_a_name() -> None:
    with gnothi.open("direct", model=gnothi.from_function(model, name="mine")) as rag:
        result = rag.ask(QUESTION)
    assert (result.model, result.cost.model_calls) == ("mine", 1)


def test_further_models_and_indexes_may_be_as_plain() -> None:
    judged: list[str] = []

    def judge(text: str) -> str:
        judged.append(text)
        return "Yes"

    with gnothi.open("keqa", model=model, index=plain, utility_judge=judge, decompose=False, assess=False) as rag:
        rag.ask(QUESTION)
    assert judged
    with refused(InvalidSetting):
        gnothi.open("crag", model=Scripted({}), index=plain, elsewhere=object())


@pytest.mark.parametrize("given", [object(), Members, lambda query: [query], 3])
def test_what_cannot_search_is_told(given: Any) -> None:
    with refused(InvalidSetting):
        gnothi.open("rag", model=model, index=given)


def test_a_forgotten_model_is_told() -> None:
    with refused(InvalidSetting):
        gnothi.open("rag", index=plain)
    with gnothi.open("rag", model=Scripted({}, default="x", name="lab"), index=plain) as rag:
        assert rag.ask(QUESTION).text == "x"


def test_runs_print_as_a_table(tmp_path: Any) -> None:
    asked = [gnothi.Question(str(n), QUESTION, ("lentil soup",)) for n in range(3)]
    run = gnothi.evaluate(asked, ["direct", "rag"], tmp_path, model=model, index=plain)
    assert "answer found" in str(run)
    assert [one.as_dict()["em"] for one in run.summary.methods] == [0, 1]
    assert [row.stage for row in run.rows] == ["not_searched"] * 3 + ["answered"] * 3
