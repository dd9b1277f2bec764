"""Labels against the formula of KEQA's section 3.4, and a labelling that ends early in every way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.errors import InvalidInput, InvalidSetting, TooManyFailures
from gnothi.filtering.encoders import SentenceEncoder
from gnothi.filtering.reference import HEADER, LABELS, VECTORS, open_reference
from gnothi.models.wrappers import Traced
from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.training.utility_reference import Labelling, UtilitySettings, judge, label
from gnothi.types import Passage, Prompt, Question
from tests.filtering.encoder import tiny_encoder
from tests.messages import refused

PASSAGES = [Passage(f"p{number}", f"text {number}") for number in range(5)]
ALONE, ACCUMULATE = (UtilitySettings(form=form, reason=False) for form in ("alone", "accumulate"))
CONFIG = {"dataset.name": "test"}

Subset = frozenset[int]


def model_of(quality: Callable[[Subset], int]) -> Scripted:
    """Answers with so many of the gold answer's four words as ``quality`` of the passages shown says."""

    def script(prompt: Prompt) -> str:
        shown = frozenset(int(passage.id.removeprefix("p")) for passage in prompt.passages)
        return " ".join(["one", "two", "three", "four"][: quality(shown)]) or "nothing"

    return Scripted(script)


def labels(quality: Callable[[Subset], int], settings: UtilitySettings) -> list[int]:
    question = Question("q", "Which words?", ("one two three four",))
    judged = asyncio.run(judge(question, model_of(quality), ScriptedRetriever(PASSAGES), settings))
    assert [one.passage for one in judged] == PASSAGES[: settings.k]
    return [one.label for one in judged]


@given(st.lists(st.integers(0, 4), min_size=32, max_size=32))
def test_labels_are_those_of_the_paper(table: list[int]) -> None:
    """U(Q, K') is the sign of Cor(Q, K* with K') - Cor(Q, K*), K* the helpful ones before it (none, where judged alone)."""

    def quality(shown: Subset) -> int:
        return table[sum(1 << number for number in shown)]

    alone = [quality(frozenset({number})) - quality(frozenset()) for number in range(5)]
    assert labels(quality, ALONE) == [(gain > 0) - (gain < 0) for gain in alone]
    helpful: Subset = frozenset()
    expected = []
    for number in range(5):
        gain = quality(helpful | {number}) - quality(helpful)
        expected.append((gain > 0) - (gain < 0))
        helpful |= {number} if gain > 0 else frozenset()
    assert labels(quality, ACCUMULATE) == expected


def test_so_many_passages_as_asked() -> None:
    assert labels(len, UtilitySettings(k=2, form="alone", reason=False)) == [1, 1]


@pytest.mark.parametrize(
    ("kind", "settings", "accumulates", "reasons"),
    [
        ("", UtilitySettings(), False, False),
        ("one_hop", UtilitySettings(), False, False),
        ("bridge", UtilitySettings(), True, True),
        ("two_hop", UtilitySettings(form="alone"), False, False),
        ("one_hop", UtilitySettings(form="accumulate"), True, True),
        ("two_hop", UtilitySettings(reason=False), True, False),
        ("one_hop", UtilitySettings(reason=True), False, True),
    ],
)
def test_the_form_follows_the_kind(kind: str, settings: UtilitySettings, accumulates: bool, reasons: bool) -> None:
    question = Question("q", "Who?", ("x",), kind=kind)
    assert (settings.accumulates(question), settings.reasons(question)) == (accumulates, reasons)


def test_reasoning_ends_in_the_answer() -> None:
    model = Scripted(lambda prompt: "It is said. So the answer is Ann." if prompt.passages else "So the answer is Bob.")
    question = Question("q", "Who?", ("Ann",), kind="two_hop")
    judged = asyncio.run(judge(question, model, ScriptedRetriever(PASSAGES[:2]), UtilitySettings()))
    assert [one.label for one in judged] == [1, 0]
    assert {prompt.task.name for prompt in model.prompts} == {"reason"}
    assert [len(prompt.passages) for prompt in model.prompts] == [0, 1, 2]


# --- the whole of it -----------------------------------------------------------------------------------------------

QUESTIONS = [Question(f"q{number}", f"Question {number}?", ("one two three four",)) for number in range(12)]


def build(
    out: Path,
    model: Scripted,
    questions: Sequence[Question] = QUESTIONS,
    config: Mapping[str, object] = CONFIG,
    encoder: SentenceEncoder | None = None,
    max_failures: int | None = None,
    on_line: Callable[[object], None] | None = None,
) -> dict[str, object]:
    with Labelling(out, questions, config) as labelling:
        find = partial(label, model=Traced(model), retriever=ScriptedRetriever(PASSAGES), settings=ALONE)
        asyncio.run(labelling.collect(find, 3, max_failures, on_line))
        return labelling.finish(encoder, {"model": "scripted"})


def helps_or_harms(shown: Subset) -> int:
    return {frozenset[int](): 2, frozenset({0}): 3, frozenset({1}): 1}.get(shown, 2)


def content(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir()}


def test_a_reference_is_made(tmp_path: Path) -> None:
    header = build(tmp_path, model_of(helps_or_harms))
    assert header == json.loads((tmp_path / HEADER).read_text()) == {
        "format": 1, "encoder": "lexical", "model": "scripted", "questions": 12, "failures": 0, "passages": 60,
        "helpful": 12, "harmful": 12, "without_effect": 36,
        "retrievals": 0, "model_calls": 72,
        "prompt_tokens": header["prompt_tokens"], "generated_tokens": header["generated_tokens"], "cached_calls": 0,
        "thought_tokens": 0,
    }  # fmt: skip
    found = open_reference(tmp_path).labelled
    assert [(item.question, item.passage, item.helpful) for item in found[:2]] == [
        ("Question 0?", PASSAGES[0], True),
        ("Question 0?", PASSAGES[1], False),
    ]


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("finished", [1, 5, 11])
def test_an_interruption_leads_to_the_same_files(tmp_path: Path, finished: int) -> None:
    build(tmp_path / "undisturbed", model_of(helps_or_harms))
    model = model_of(helps_or_harms)
    seen: list[object] = []

    def interrupt(line: object) -> None:
        seen.append(line)
        if len(seen) == finished:
            raise Interrupted

    with pytest.raises(Interrupted):
        build(tmp_path / "disturbed", model_of(helps_or_harms), on_line=interrupt)
    with (tmp_path / "disturbed" / LABELS).open("ab") as file:
        file.write(b'{"question_id": "q7", "judg')  # a torn line
    assert not (tmp_path / "disturbed" / HEADER).exists()
    build(tmp_path / "disturbed", model)
    assert content(tmp_path / "disturbed") == content(tmp_path / "undisturbed")
    assert len(model.prompts) <= 72 - 6 * finished

    asked = len(model.prompts)
    build(tmp_path / "disturbed", model)
    assert len(model.prompts) == asked
    assert content(tmp_path / "disturbed") == content(tmp_path / "undisturbed")


def test_a_failed_question_is_left_out_and_tried_again(tmp_path: Path) -> None:
    def script(prompt: Prompt) -> str:
        if prompt.question == "Question 3?":
            raise RuntimeError("no luck")
        return "one"

    header = build(tmp_path, Scripted(script))
    assert (header["questions"], header["failures"]) == (12, 1)
    line = json.loads((tmp_path / LABELS).read_text().splitlines()[3])
    assert (line["question_id"], line["error"]["type"]) == ("q3", "RuntimeError")
    assert "no luck" in line["error"]["message"]
    model = Scripted(lambda _: "one")
    assert build(tmp_path, model)["failures"] == 0
    assert {prompt.question for prompt in model.prompts} == {"Question 3?"}


def test_too_many_failures(tmp_path: Path) -> None:
    def script(prompt: Prompt) -> str:
        raise RuntimeError(prompt.question)

    with refused(TooManyFailures, varies=r"\d(?=[)?])"):
        build(tmp_path, Scripted(script), max_failures=2)


def test_what_is_refused(tmp_path: Path) -> None:
    with refused(InvalidInput):
        build(tmp_path, model_of(len), [Question("x", "Who?")])
    build(tmp_path, model_of(len))
    with refused(InvalidSetting):
        build(tmp_path, model_of(len), config={"dataset.name": "other"})
    with Labelling(tmp_path, QUESTIONS, CONFIG), refused(InvalidSetting):
        build(tmp_path, model_of(len))


def test_no_labels_no_vectors(tmp_path: Path) -> None:
    build(tmp_path / "out", model_of(lambda _: 1), encoder=SentenceEncoder(tiny_encoder(tmp_path / "encoder")))
    source = open_reference(tmp_path / "out")
    assert asyncio.run(source.nearest("Who?", PASSAGES[0], 8, 2)) == ()


def test_another_encoder_keeps_the_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceEncoder(tiny_encoder(tmp_path / "encoder"))
    model = model_of(helps_or_harms)
    build(tmp_path / "out", model)
    before = content(tmp_path / "out")
    asked = len(model.prompts)
    assert build(tmp_path / "out", model, encoder=encoder)["encoder"] == encoder.name
    assert len(model.prompts) == asked
    assert content(tmp_path / "out")[LABELS] == before[LABELS]
    monkeypatch.chdir(tmp_path)
    source = open_reference("out", "encoder")
    (found,) = asyncio.run(source.nearest("Question 4?", PASSAGES[1], 1, 0))
    assert (found.answer, found.passages) == ("No", (PASSAGES[1],))
    asyncio.run(source.aclose())
    build(tmp_path / "out", model)
    assert content(tmp_path / "out") == before
    assert not (tmp_path / "out" / VECTORS).exists()


@pytest.mark.parametrize("kind", ["", "two_hop"])
async def test_answers_without_worked_examples(kind: str) -> None:
    model = Scripted(lambda _: "It was so. So the answer is one.")
    question = Question("q", "Who was it?", ("one",), kind=kind)
    await label(question, model, ScriptedRetriever([Passage("p", "It was one.")]), UtilitySettings(demonstrations=False))
    assert len(model.prompts) == 2
    assert all(not prompt.task.demonstrations and prompt.task.instruction for prompt in model.prompts)
