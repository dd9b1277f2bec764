"""Methods that are functions: what they are given, what their parameters become, and that they do what classes do."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pytest

import gnothi
from gnothi import events, methods
from gnothi.errors import BrokenPlugin, InvalidInput, InvalidSetting, MissingCapability, UnknownName
from gnothi.fields import setting
from gnothi.methods.registry import METHODS
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.settings import needs_of
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.gate import Gate
from gnothi.testing import Reply, Scripted, ScriptedRetriever
from gnothi.testing.conformance.method import QUESTIONS, MethodConformance, WordRetriever, reader
from gnothi.types import Answer, Capabilities, Passage, Profile, Prompt, Question
from tests.messages import refused

if TYPE_CHECKING:
    from somewhere import Unheard  # type: ignore[import-not-found]


PLACES = ScriptedRetriever([Passage("p", "It is Ulm.", "Ulm")])


@gnothi.method
async def second_try(steps: gnothi.Steps, question: Unheard, k: int = 30, threshold: float = 0.2) -> Answer:
    """Search only where samples of the first answer disagree."""
    draft = await steps.draft(question, signal="consistency")
    if draft.uncertainty <= threshold:
        return draft
    return await steps.read(question, await steps.search(question, k))


@gnothi.method
async def always(steps, question, k=30):  # type: ignore[no-untyped-def]
    """Search, then read."""
    return await steps.read(question, await steps.search(question, k))


@gnothi.method
async def asked_first(steps, question, signal: str = "self_report", threshold: float | None = None):  # type: ignore[no-untyped-def]
    """Search unless the model says that it knows."""
    if await steps.measure(question, signal=signal) > threshold:
        return await steps.read(question, await steps.search(question, 30))
    return await steps.draft(question)


@gnothi.method(searches=False)
async def from_memory(steps, question):  # type: ignore[no-untyped-def]
    """Answer from memory."""
    return await steps.draft(question)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test adds is not there for others; a suite's own stays for its tests."""
    before = set(METHODS.names())
    yield
    for name in set(METHODS.names()) - before:
        METHODS.remove(name)


class TestSecondTry(MethodConformance):
    method = second_try


class TestAlways(MethodConformance):
    method = always


class TestAskedFirst(MethodConformance):
    method = asked_first


class TestFromMemory(MethodConformance):
    method = from_memory
    knows = False


# --- as a class would do it --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SecondTryByHand(ReaderSettings):
    model: LanguageModel
    retriever: Retriever
    threshold: float = setting(0.2, "Share of dissenting samples above which to search.")
    k: int = setting(30, "Passages.")

    name: ClassVar[str] = "second_try"

    @property
    def needs(self) -> Capabilities:
        return needs_of("consistency") | self.answering_needs

    async def __call__(self, question: Question) -> Answer:
        prompt = self.reading(question)
        verdict = await Gate(self.make_signal("consistency"), self.threshold)(self.model, prompt, self.reply_decoding(prompt))
        if not verdict.fired:
            return await self.answer_from(self.model, prompt, verdict.measured)
        found = await self.retriever.search(question.text, self.k)
        return await self.read(self.model, question, [one.passage for one in found])


def replies(prompt: Prompt) -> list[Reply]:
    """Sure of some questions, wavering over others, silent over one."""
    if prompt.question.endswith("1 born?"):
        return [Reply("Corda. So the answer is Corda.", (-0.1,))]
    if prompt.question.endswith("2 born?"):
        return [Reply("I don't know.")]
    return reader(prompt)


async def told(method: Any, question: Question) -> tuple[Answer, list[str]]:
    with events.record() as happened:
        answer = await method(question)
    return answer, [str(event) for event in happened]


@pytest.mark.parametrize("threshold", [-math.inf, -1.0, 0.0, 0.2, 0.6, 1.0, math.inf])
async def test_a_function_does_what_a_class_does(threshold: float) -> None:
    for question in (*QUESTIONS[:4], Question("s", "Where was Velkarra2 born?")):
        by_hand = SecondTryByHand(Scripted(replies), WordRetriever(), threshold, reason=True)
        made: Any = second_try
        ours = made(Scripted(replies), WordRetriever(), threshold=threshold, reason=True)
        answer, happened = await told(ours, question)
        expected, as_classes_do = await told(by_hand, question)
        assert answer == expected
        if math.isfinite(threshold):
            assert happened == as_classes_do
        assert [type(one) for one in happened] == [type(one) for one in as_classes_do]


def without_time(row: Any) -> Any:
    return replace(row, method="", cost={key: value for key, value in row.cost.items() if key != "seconds"})


def test_always_is_rag(tmp_path: Any) -> None:
    run = gnothi.evaluate(
        QUESTIONS, [always, "rag"], tmp_path, model=Scripted(reader), index=WordRetriever(), settings={"k": 5}
    )
    ours, theirs = ([row for row in run.rows if row.method == name] for name in ("always", "rag"))
    assert [without_time(row) for row in ours] == [without_time(row) for row in theirs]
    again = gnothi.evaluate(
        QUESTIONS, [always, "rag"], tmp_path, model=Scripted(reader), index=WordRetriever(), settings={"k": 5}
    )
    assert again.rows == run.rows


# --- parameters --------------------------------------------------------------------------------------------------------------


async def varied(  # type: ignore[no-untyped-def]
    steps: Any,  # noqa: ARG001
    question: Any,  # noqa: ARG001
    k: int = gnothi.setting(3, "Passages.", at_least=1),
    how: Literal["a", "b"] = "a",
    n=2,
    share=0.5,
    maybe: int | None = None,
    kinds: tuple[str, ...] = ("x",),
    *,
    on=True,
    max_tokens: int = 7,
    judge: LanguageModel | None = None,
) -> str:
    """Everything a function may take.

    More of it."""
    return f"{k} {how} {n} {share} {maybe} {kinds} {on} {max_tokens} {judge and judge.name}"


def test_parameters_are_settings() -> None:
    name = methods.spec(varied).name
    described = methods.describe(name)
    assert (described.name, described.summary) == ("varied", "Everything a function may take.")
    found = methods.spec(name).settings
    types = {key: found[key].type_name for key in ("k", "how", "n", "share", "maybe", "kinds", "on", "max_tokens", "judge")}
    assert types["how"] == "one of a, b"
    assert types["n"] == types["k"] == types["max_tokens"] == "a whole number"
    assert types["share"] == "a number"
    assert types["on"] == "true or false"
    assert found["k"].help == "Passages."
    assert found["max_tokens"].default == 7
    with gnothi.open(varied, model=lambda _: "", index=PLACES, k=4, how="b", judge=lambda _: "x") as rag:
        assert rag.ask("?").text.startswith("4 b 2 0.5 None ('x',) True 7 ")
        assert rag.settings["max_tokens"] == 7


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"k": "many"}, InvalidSetting),
        ({"k": 0}, InvalidSetting),
        ({"how": "c"}, InvalidSetting),
        ({"treshold": 1}, UnknownName),
        ({"judge": 3}, InvalidSetting),
    ],
)
def test_values_are_checked_before_anything_is_asked(given: dict[str, Any], error: type[Exception]) -> None:
    with refused(error):
        gnothi.open(varied, model=lambda _: "", index=PLACES, **given)


def plain(steps: Any, question: Any) -> str:  # noqa: ARG001
    return ""


async def alone(steps: Any) -> str:  # noqa: ARG001
    return ""


async def without_default(steps: Any, question: Any, k: int) -> str:  # noqa: ARG001
    return ""


async def anything(steps: Any, question: Any, **more: Any) -> str:  # noqa: ARG001
    return ""


async def takes_a_name(steps: Any, question: Any, model: int = 3) -> str:  # noqa: ARG001
    return ""


async def untypable(steps: Any, question: Any, k: Any = None) -> str:  # noqa: ARG001
    return ""


async def other_default(steps: Any, question: Any, k: int = "three") -> str:  # type: ignore[assignment] # noqa: ARG001
    return ""


async def unknown_type(steps: Any, question: Any, k: Unheard = 3) -> str:  # noqa: ARG001
    return ""


async def other_shared(steps: Any, question: Any, max_tokens: str = "many") -> str:  # noqa: ARG001
    return ""


@pytest.mark.parametrize(
    "function",
    [plain, len, alone, without_default, anything, takes_a_name, untypable, other_default, unknown_type, other_shared],
)
def test_what_cannot_be_a_method_is_told(function: Any) -> None:
    with refused(InvalidSetting):
        gnothi.method(function)


@pytest.mark.parametrize("value", [None, 3, b"x", ["x"]])
def test_what_is_no_answer_is_told(value: Any) -> None:
    async def wrong(steps: Any, question: Any) -> Any:  # noqa: ARG001
        return value

    with gnothi.open(wrong, model=Scripted({}), index=PLACES) as rag, refused(InvalidSetting):
        rag.ask("?")


def test_a_forgotten_await_is_told() -> None:
    async def hasty(steps: Any, question: Any) -> Any:
        return steps.draft(question)

    with gnothi.open(hasty, model=lambda _: "", index=PLACES) as rag, refused(InvalidSetting):
        rag.ask("?")


def test_a_text_is_an_answer_and_takes_the_spelling_of_a_choice() -> None:
    async def text(steps: Any, question: Any) -> str:  # noqa: ARG001
        return "the KESTREL!"

    with gnothi.open(text, model=lambda _: "", index=PLACES) as rag:
        assert rag.ask("?", ("Kestrel", "Ulm")).text == "Kestrel"


# --- its gate ----------------------------------------------------------------------------------------------------------------


@gnothi.method
async def chosen(steps, question, signal: str = "consistency", threshold: float = 0.2):  # type: ignore[no-untyped-def]
    draft = await steps.draft(question, signal=signal)
    return draft if draft.uncertainty <= threshold else await steps.read(question, await steps.search(question, 3))


@gnothi.method
async def two_signals(steps, question, threshold: float = 0.2):  # type: ignore[no-untyped-def]
    first = await steps.draft(question, signal="perplexity")
    second = await steps.draft(question, signal="consistency")
    return first if first.uncertainty < threshold else second


def guesses(prompt: Prompt) -> Reply | list[Reply]:
    if prompt.passages or "sure" in prompt.question:
        return Reply("Ulm", (-0.1,))
    return [Reply(f"Town {n}", (-1.0,), doubt=1.0) for n in range(9)]


@pytest.mark.parametrize("method", [second_try, chosen])
def test_its_threshold_can_be_calibrated(method: Any) -> None:
    asked = [Question(f"{n}", f"{'sure' if n % 2 else 'not'} {n}?", ("Ulm",)) for n in range(40)]
    more: dict[str, Any] = {"model": Scripted(guesses), "index": PLACES, "reason": False}
    found = gnothi.calibrate(method, asked, search_cost=0.1, **more)
    assert (found.method, found.signal) == (method.name, "consistency")
    with gnothi.open(method, calibration=found, **more) as rag:
        assert rag.settings["threshold"] == found.threshold
        assert [one.verdict for one in rag.ask("sure?").decisions] == ["trust"]
        (decision,) = rag.ask("not?").decisions
        assert (decision.signal, decision.verdict, decision.threshold) == ("consistency", "retrieve", found.threshold)
        assert rag.know("sure?").knows
        assert not rag.know("not?").knows


@pytest.mark.parametrize("method", [two_signals, always, from_memory])
def test_one_without_a_gate_cannot(method: Any) -> None:
    asked = [Question(f"{n}", f"{n}?", ("Ulm",)) for n in range(40)]
    with refused(InvalidSetting):
        gnothi.calibrate(method, asked, search_cost=0.1, model=Scripted(guesses), index=PLACES)


def test_the_signal_of_its_code_stays_and_a_parameter_may_be_another() -> None:
    with refused(InvalidSetting):
        gnothi.open(second_try, model=Scripted(guesses), index=PLACES, signal="perplexity")
    with gnothi.open(chosen, model=Scripted(guesses), index=PLACES, signal="perplexity", threshold=5) as rag:
        assert rag.ask("not?").decisions[0].signal == "perplexity"


def test_without_a_threshold_of_its_own_it_takes_the_usual_one() -> None:
    assert methods.spec(methods.spec(asked_first).name).gate is not None
    with gnothi.open(asked_first, model=Scripted(guesses), index=PLACES) as rag:
        assert rag.ask("not?").decisions[0].threshold == 0.5
    with refused(InvalidSetting):
        gnothi.open(asked_first, model=Scripted(guesses), index=PLACES, signal="energy")


async def needs_states(steps: Any, question: Any) -> Any:
    return await steps.draft(question, signal="gram")


async def needs_states_unseen(steps: Any, question: Any) -> Any:
    name = "".join(["gr", "am"])
    return await steps.draft(question, signal=name)


def test_what_the_model_lacks_is_told() -> None:
    with refused(MissingCapability):
        gnothi.open(needs_states, model=lambda _: "", index=PLACES)
    with gnothi.open(needs_states_unseen, model=lambda _: "", index=PLACES) as rag, pytest.raises(MissingCapability):
        rag.ask("?")


# --- steps -------------------------------------------------------------------------------------------------------------------


def test_steps_on_the_way() -> None:
    @gnothi.method
    async def rewriting(steps: Any, question: Any, k: int = 2) -> Any:
        query = await steps.ask("Write a query.", question)
        found = [*await steps.search(query, k), *await steps.search(question, k), *await steps.search("", k)]
        inner = await steps.draft("Another question?")
        doubt = await steps.measure("Another question?", signal="perplexity", passages=found)
        answer = await steps.read(question, found)
        assert len(answer.evidence) == len({one.id for one in found}) < len(found)
        assert (inner.text, inner.uncertainty) == ("memory", doubt)
        return answer

    model = Scripted(lambda prompt: "a query" if prompt.task.instruction == "Write a query." else "memory")
    retriever = ScriptedRetriever([Passage("a", "A."), Passage("b", "B.")])
    with gnothi.open(rewriting, model=model, index=retriever) as rag:
        result = rag.ask("What?")
    assert [search.query for search in result.searches] == ["a query", "What?"]
    assert result.text == "memory"
    assert {prompt.question for prompt in model.prompts} == {"What?", "Another question?"}


@pytest.mark.parametrize("forgets", [True, False])
def test_what_are_no_passages_is_told(forgets: bool) -> None:
    async def careless(steps: Any, question: Any) -> Any:
        return await steps.read(question, steps.search(question, 1) if forgets else ["a text"])

    with gnothi.open(careless, model=Scripted({}), index=PLACES) as rag, refused(InvalidSetting):
        rag.ask("?")


def test_a_gate_without_signal_and_threshold_is_told() -> None:
    rag = gnothi.open(asked_first, model=Scripted({}), index=PLACES, signal=None)
    with rag, refused(InvalidSetting):
        rag.ask("?")


def test_a_model_of_tasks_of_its_own_is_not_asked_others() -> None:
    async def asking(steps: Any, question: Any) -> Any:
        return await steps.ask("Say something.", question)

    model = Scripted({})
    model.profile = Profile(tasks=frozenset({"answer"}))
    with gnothi.open(asking, model=model, index=PLACES) as rag, refused(MissingCapability):
        rag.ask("Who directed The Amber Harbour?")


def test_one_that_searches_says_so() -> None:
    with refused(InvalidSetting):
        gnothi.open(always, model=Scripted(guesses))

    @gnothi.method(searches=False)
    async def denying(steps: Any, question: Any) -> Any:
        return await steps.read(question, await steps.search(question, 1))

    with gnothi.open(denying, model=Scripted(guesses)) as rag, refused(InvalidSetting):
        rag.ask("?")


async def test_a_blank_question_is_refused_before_the_function_is_called() -> None:
    made: Any = always
    with pytest.raises(InvalidInput):
        await made(Scripted(guesses), PLACES)(Question("q", " "))


# --- names -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("no_such_module_of_ours:x", BrokenPlugin),
        (f"{__name__}:nothing", BrokenPlugin),
        ("os:path", InvalidSetting),
        (f"{__name__}:Named", InvalidSetting),
        (f"{__name__}:alone", InvalidSetting),
        (plain, InvalidSetting),
        (3, InvalidSetting),
    ],
)
def test_what_is_no_method_is_told(given: Any, error: type[Exception]) -> None:
    with refused(error):
        gnothi.open(given, model="lab", index="lab")


class Named:
    name = "named"


@pytest.mark.parametrize("given", [second_try, f"{__name__}:second_try"])
def test_it_is_known_by_its_name_wherever_one_is_taken(given: Any) -> None:
    assert methods.spec(given).name == "second_try"
    with gnothi.open(given, model=Scripted(guesses), index=PLACES) as rag:
        assert rag.method == "second_try"
    assert "second_try" in METHODS.names()


def test_the_name_of_another_is_refused() -> None:
    async def seakr(steps: Any, question: Any) -> Any:
        return await steps.draft(question)

    with refused(InvalidSetting):
        gnothi.open(seakr, model="lab")


def test_the_command_line_takes_it(gnothi: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours_by_name.py").write_text(
        "async def thrice(steps, question, n: int = 3):\n    'Say it thrice.'\n    return 'so ' * n\n"
    )
    monkeypatch.chdir(tmp_path)
    code, out, _ = gnothi("list", "methods", "ours_by_name:thrice")
    assert code == 0
    assert "Say it thrice." in out


@pytest.mark.slow
def test_the_command_line_asks_it(gnothi: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asked_by_name.py").write_text("async def twice(steps, question, n: int = 3):\n    return 'so ' * n\n")
    monkeypatch.chdir(tmp_path)
    code, out, _ = gnothi("ask", "What?", "--method", "asked_by_name:twice", "--set", "n=2", "--json")
    assert code == 0
    assert '"so so"' in out.replace("so so ", "so so")


def test_annotated_settings_are_taken() -> None:
    @gnothi.method
    async def annotated(steps: Any, question: Any, k: Annotated[int, "passages"] = 3) -> Any:  # noqa: ARG001
        return str(k)

    made: Any = annotated
    assert asyncio.run(made(Scripted(guesses), PLACES, k=4)(Question("q", "?"))).text == "4"
