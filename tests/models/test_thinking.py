"""Models that think before they answer: whatever a template does, the answer comes after the thought, and alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
import torch

from gnothi.errors import InvalidInput, InvalidSetting, PromptTooLong
from gnothi.events import ModelCall, Usage, record
from gnothi.models.batched import Batched
from gnothi.models.engine.text import Detokenizer
from gnothi.models.rendering import Begun, Chat, make_renderer
from gnothi.models.settings import ModelSettings
from gnothi.models.templates import Template
from gnothi.models.thinking import ThinksFirst, renderer_of, thinking_first
from gnothi.models.thoughts import MARKS, begun
from gnothi.models.transformers import TransformersBackend
from gnothi.models.wrappers import Traced, Wrapper
from gnothi.protocols import LanguageModel
from gnothi.testing.conformance.language_model import GREEDY, PROMPTS, LanguageModelConformance, Network, NetworkConformance
from gnothi.testing.model import Scripted
from gnothi.types import Decoding, Demonstration, Generation, Prompt, Samples, StateSpec, Task, Token
from tests.messages import refused
from tests.models.thinking_templates import FAMILIES, Family
from tests.models.tiny import CONTEXT, build_model, build_tokenizer

pytestmark = pytest.mark.usefixtures("one_trial")

TURN = ({"role": "user", "content": "Who was it?"},)
TASK = Task("answer", "Answer briefly.", (Demonstration("Who wrote Emma?", "Jane Austen"),), "Answer:")
PROMPT = Prompt(TASK, "Who was it?")
DAY = "2026-02-03"


def templated(template: str) -> Any:
    tokenizer = build_tokenizer()
    tokenizer.chat_template = template
    return tokenizer


def family(name: str) -> Any:
    return templated(FAMILIES[name].template)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
class TestFamilies:
    def test_off_ends_where_the_answer_begins(self, family: Family) -> None:
        text = Template(templated(family.template), day=DAY)(TURN)
        assert text.endswith(family.off)
        assert family.before is None or family.before in text
        assert not any(marks.opens in text.rpartition(marks.closes)[2] for marks in MARKS)

    def test_on_ends_where_the_thought_begins(self, family: Family) -> None:
        tokenizer = templated(family.template)
        if family.on is None:
            with refused(InvalidSetting):
                Template(tokenizer, "on", 77, DAY)
            return
        template = Template(tokenizer, "on", 77, DAY)
        text = template.opened(TURN)
        assert text.endswith(family.on)
        assert family.before_on is None or family.before_on in text
        # What is scored, looked at or continued is the same, thinking or not.
        assert template(TURN) == Template(tokenizer, day=DAY)(TURN)

    def test_an_effort_goes_where_one_is_taken(self, family: Family) -> None:
        tokenizer = templated(family.template)
        if family.effort:
            assert "high" in Template(tokenizer, "high", 77, DAY).opened(TURN)
        else:
            with refused(InvalidSetting):
                Template(tokenizer, "high", 77, DAY)

    def test_label_and_answer_follow_the_thought(self, family: Family) -> None:
        renderer = make_renderer("auto", templated(family.template), day=DAY)
        continued = renderer.render(replace(PROMPT, answer_so_far="It was"))
        for one in MARKS:
            assert one.opens not in continued.rpartition(one.closes)[2]
        assert continued.endswith("Answer: It was")
        if family.on is None:
            return
        thinking = make_renderer("auto", templated(family.template), thinking="on", tokens=77, day=DAY)
        assert isinstance(thinking, Chat)
        assert thinking.render(Begun.of(PROMPT, thinks=True, labelled=False)).endswith(family.on)
        whole = thinking.render(Begun.of(PROMPT, thinks=True, before=thinking.template.answering("Ann? Yes.\n")))
        marks = thinking.template.marks
        assert marks is not None
        thought, _, answer = whole.rpartition(marks.closes)
        assert thought.count("Ann? Yes.\n") == 1
        assert answer.endswith("Answer:")


def test_marks_in_a_question_open_nothing() -> None:
    tokenizer = family("qwen3")
    asked = Template(tokenizer)(({"role": "user", "content": "What does <think> open?"},))
    assert asked.endswith("<think>\n\n</think>\n\n")
    tokenizer.add_tokens(["<think>", "</think>"])
    text = renderer_of(ModelSettings(), tokenizer, None).render(replace(PROMPT, question="Is </think> an end?"))
    assert text.count("</think>") == 1


def test_channels_that_only_the_vocabulary_tells_of() -> None:
    tokenizer = family("plain")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|channel|>", "<|message|>", "<|start|>", "<|end|>"]})
    assert Template(tokenizer)(TURN).endswith("<|channel|>final<|message|>")
    tokenizer = family("plain")
    tokenizer.add_tokens(["<think>", "</think>"])  # a vocabulary that a family shares, thinking or not
    assert Template(tokenizer)(TURN).endswith("[assistant]\n")


def test_a_variable_that_takes_other_values_is_left_alone() -> None:
    picky = (
        "{% if reasoning_effort is defined and reasoning_effort not in ['deep', 'deeper'] %}{{ raise_exception('no') }}"
        "{% endif %}"
    )
    tokenizer = templated(picky + FAMILIES["qwq"].template)
    assert Template(tokenizer)(TURN).endswith("<think>\n\n</think>\n\n")
    assert Template(tokenizer, "on", 10).opened(TURN).endswith("<think>\n")
    with refused(InvalidInput):
        Template(tokenizer, "high", 10)


@pytest.mark.parametrize("name", ["smollm3", "gpt-oss"])
def test_a_date_stays_what_it_was(name: str) -> None:
    first = Template(family(name), day=DAY)
    assert (first.day, first.metadata["date"]) == (DAY, DAY)
    assert first(TURN) == Template(family(name), day=DAY)(TURN) != Template(family(name), day="2026-02-04")(TURN)
    assert Template(family("qwen3"), day=DAY).day == ""
    assert Template(family("dated-tools"), day=DAY).day == ""


def test_a_date_that_is_none() -> None:
    with refused(InvalidSetting):
        Template(family("smollm3"), day="tomorrow")
    with refused(InvalidInput):
        Template(templated("{% set f = '%' ~ 'Y-' %}{{ strftime_now(f) }}{% for m in messages %}{{ m.content }}{% endfor %}"))
    lines = "\n\n{{ strftime_now('%Y') }}\n{% for m in messages %}{{ m.content }}{% endfor %}"
    assert Template(templated(lines), day=DAY)(TURN) == "\n\n2026\nWho was it?"


def test_thinking_needs_a_chat_template() -> None:
    with refused(InvalidSetting):
        renderer_of(ModelSettings(thinking="on", renderer="tagged"), family("qwen3"), None)
    with refused(InvalidSetting):
        renderer_of(ModelSettings(thinking_tokens=0), family("qwen3"), None)
    scripted = Scripted({}, default="Ann")
    assert thinking_first(scripted, renderer_of(ModelSettings(renderer="plain"), family("qwen3"), None)) is scripted


def test_a_thought_closed_whatever_is_asked() -> None:
    closed = "{% for m in messages %}{{ m.content }}{% endfor %}<think></think>"
    with refused(InvalidSetting):
        Template(templated(closed), "on", 10)


# --- decoding --------------------------------------------------------------------------------------------------------------


class Told(Wrapper):
    """Says what ``script`` makes of the text of each prompt; a word is a token. ``asked`` are texts and decodings."""

    def __init__(self, renderer: Any, script: Callable[[str], str]) -> None:
        super().__init__(Scripted({}, default=""))
        self._renderer, self._script = renderer, script
        self.asked: list[tuple[str, Decoding]] = []

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Any = ()) -> Samples:
        text = self._renderer.render(prompt)
        self.asked.append((text, decoding))
        whole = self._script(text)
        ends = [at for at in map(whole.find, decoding.stop) if at >= 0]
        said = whole[: min(ends)] if ends else whole
        words = said.split(" ")
        cut = len(words) > decoding.max_tokens
        said = " ".join(words[: decoding.max_tokens])
        tokens = tuple(Token(f" {word}", -0.5) for word in words[: decoding.max_tokens])
        one = Generation(said, tokens, "length" if cut else "stop" if ends else "eos", len(text.split()), len(tokens))
        states = tuple(np.full((n, 2), len(text), np.float32) for _ in hidden)
        return Samples((one,) * n, states)


def thinker(name: str, script: Callable[[str], str], **settings: Any) -> tuple[ThinksFirst, Told]:
    renderer = renderer_of(ModelSettings(**settings), family(name), None)
    told = Told(renderer, script)
    model = thinking_first(told, renderer)
    assert isinstance(model, ThinksFirst)
    return model, told


def opens(text: str) -> bool:
    return text.endswith(tuple(family.on for family in FAMILIES.values() if family.on))


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.on])
def test_a_thought_comes_first_and_apart(name: str) -> None:
    marks = renderer_of(ModelSettings(thinking="on"), family(name), None).inner.template.marks  # type: ignore[attr-defined]

    def script(text: str) -> str:
        return f"Is it Ann?\nStop. Yes{marks.closing}Bo" if opens(text) else "Ann Bell\nQuestion: no more"

    model, told = thinker(name, script, thinking="on", thinking_tokens=9)
    with record() as events:
        found = asyncio.run(Traced(model).generate(PROMPT, Decoding(max_tokens=3, stop=("\n", "Stop"))))
    assert (found.text, found.thought) == ("Ann Bell", "Is it Ann?\nStop. Yes")
    assert "".join(token.text for token in found.tokens) == " Ann Bell"
    assert (found.generated_tokens, found.thought_tokens, found.thought_cut, found.finish) == (6, 4, False, "stop")
    (first, thinking), (second, answering) = told.asked
    assert found.prompt_tokens == len(first.split())
    assert second.startswith(first + "Is it Ann?\nStop. Yes")
    assert (thinking.max_tokens, thinking.stop) == (9, marks.stops)
    assert answering.max_tokens == 3
    assert answering.stop[:2] == ("\n", "Stop")
    call = next(event for event in events if isinstance(event, ModelCall))
    assert (call.texts, call.thoughts, call.thought_tokens) == (("Ann Bell",), (found.thought,), 4)
    assert (Usage.of(events).generated_tokens, Usage.of(events).thought_tokens) == (6, 4)


def test_a_thought_that_never_ends_is_closed_and_answered_by() -> None:
    model, told = thinker("qwq", lambda text: "or " * 99 if opens(text) else "Ann", thinking="on", thinking_tokens=5)
    found = asyncio.run(model.generate(PROMPT, Decoding()))
    assert (found.text, found.thought, found.thought_tokens, found.thought_cut) == ("Ann", "or or or or or", 5, True)
    assert told.asked[1][0].endswith("<think>\nor or or or or\n</think>\n\nAnswer:")
    assert {key: model.statistics[key] for key in ("thoughts", "thought_tokens", "thoughts_cut")} == {
        "thoughts": 1,
        "thought_tokens": 5,
        "thoughts_cut": 1,
    }


def test_what_goes_on_with_an_answer_is_not_thought_over() -> None:
    model, told = thinker("qwen3", lambda _: "Bell", thinking="on")
    found = asyncio.run(model.generate(replace(PROMPT, answer_so_far="Ann"), Decoding()))
    assert (found.text, found.thought) == ("Bell", "")
    assert [text for text, _ in told.asked] == [told.asked[0][0]]
    assert told.asked[0][0].endswith("<think>\n\n</think>\n\nAnswer: Ann")


def test_each_sample_has_a_thought_and_an_answer_of_its_own() -> None:
    model, told = thinker("r1-distil", lambda text: "Hm" if opens(text) else "Ann", thinking="on")
    spec = StateSpec()
    found = asyncio.run(model.sample(PROMPT, 3, Decoding(temperature=1.0, seed=5), [spec, spec]))
    assert [one.text for one in found.generations] == ["Ann"] * 3
    assert [state.shape for state in found.states] == [(3, 2), (3, 2)]
    assert found.states[0][0, 0] == len(told.asked[1][0])  # those of the answer, after the thought
    seeds = [decoding.seed for _, decoding in told.asked]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4
    fewer, again = thinker("r1-distil", lambda text: "Hm" if opens(text) else "Ann", thinking="on")
    asyncio.run(fewer.sample(PROMPT, 2, Decoding(temperature=1.0, seed=5)))
    assert [decoding.seed for _, decoding in again.asked] == seeds[:3]


def test_greedy_samples_are_thought_once() -> None:
    model, told = thinker("kimi", lambda text: "Hm" if opens(text) else "Ann", thinking="on")
    found = asyncio.run(model.sample(PROMPT, 4, Decoding(), [StateSpec()]))
    assert len(told.asked) == 2
    assert len(found.generations) == 4
    assert found.states[0].shape == (4, 2)


@pytest.mark.parametrize(
    ("said", "empty"),
    [
        ("<think>\nIs it Ann?", "<think>\n\n</think>\n\n"),
        ("[THINK]Is it Ann?", "[THINK][/THINK]"),
        ("<|channel|>analysis<|message|>Is it Ann?", "<|channel|>final<|message|>"),
    ],
)
def test_an_answer_that_turns_out_to_be_a_thought_is_asked_for_again(said: str, empty: str) -> None:
    model, told = thinker("plain", lambda text: "Ann" if empty in text else said)
    found = asyncio.run(model.sample(PROMPT, 2, Decoding(stop=("\n\n",)), [StateSpec()]))
    assert [one.text for one in found.generations] == ["Ann", "Ann"]
    assert found.generations[0].thought == "Is it Ann?"
    assert found.generations[0].generated_tokens == found.generations[0].thought_tokens + 1
    assert told.asked[1][0] == told.asked[0][0].removesuffix("Answer:") + empty + "Answer:"
    assert found.states[0][:, 0].tolist() == [len(told.asked[1][0])] * 2


def test_an_answer_that_begins_with_the_closing_mark_is_asked_for_behind_it() -> None:
    model, told = thinker("qwen3", lambda text: "Ann" if "</think>\n\n</think>\n\n" in text else "</think>\n\nAnn")
    found = asyncio.run(model.generate(PROMPT, Decoding(stop=("\n",))))
    assert (found.text, found.thought) == ("Ann", "")
    assert len(told.asked) == 2

    def doubled(text: str) -> str:
        return "or " * 9 if opens(text) else "</think>" if text.count("</think>") == 1 else "Ann"

    model, told = thinker("qwq", doubled, thinking="on", thinking_tokens=3)
    found = asyncio.run(model.generate(PROMPT, Decoding(stop=("\n",))))
    assert (found.text, found.thought, found.thought_tokens) == ("Ann", "or or or", 4)
    assert told.asked[2][0].endswith("or or or\n</think>\n\n</think>\n\nAnswer:")


def test_a_prompt_that_leaves_no_room_to_think() -> None:
    def refuse(_: str) -> str:
        raise PromptTooLong("tiny", 2100, 2048)

    model, _ = thinker("qwq", refuse, thinking="on", thinking_tokens=2000)
    with refused(PromptTooLong):
        asyncio.run(model.generate(PROMPT, Decoding()))


def test_a_model_that_does_nothing_but_think_has_no_answer() -> None:
    model, _ = thinker("plain", lambda _: "<think>\nIs it Ann?")
    found = asyncio.run(model.generate(PROMPT, Decoding()))
    assert (found.text, found.tokens, found.finish) == ("", (), "length")
    assert "Is it Ann?" in found.thought


def test_an_answer_that_speaks_of_marks_stays_whole() -> None:
    said = "The mark </think> ends what <think> opens"
    model, told = thinker("qwen3", lambda _: said)
    assert asyncio.run(model.generate(PROMPT, Decoding())).text == said
    assert len(told.asked) == 1


# --- a real network ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[True, False], ids=["special", "plain"])
def thinking_network(request: pytest.FixtureRequest) -> tuple[ThinksFirst, TransformersBackend, Any]:
    return network_that_thinks(request.param)


@cache
def network_with_marks(special: bool) -> tuple[Any, Any]:
    tokenizer = family("qwq")
    tokenizer.add_tokens(["<think>", "</think>"], special_tokens=special)
    network = build_model("llama")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network.resize_token_embeddings(len(tokenizer))
    return network, tokenizer


def network_that_thinks(special: bool, tokens: int = 24) -> tuple[ThinksFirst, TransformersBackend, Any]:
    """A random model that says its closing mark now and then; the mark is a special token, or an ordinary one."""
    network, tokenizer = network_with_marks(special)
    settings = ModelSettings(thinking="on", thinking_tokens=tokens)
    renderer = renderer_of(settings, tokenizer, None)
    backend = TransformersBackend(network, tokenizer, renderer, name="tiny", settings=settings)
    model = thinking_first(Batched(backend), renderer)
    assert isinstance(model, ThinksFirst)
    return model, backend, tokenizer


def test_a_network_thinks_then_answers(thinking_network: tuple[ThinksFirst, TransformersBackend, Any]) -> None:
    model, backend, tokenizer = thinking_network
    prompt = Prompt(Task("answer"), "who is w1 ?")
    spec = StateSpec(position="predicting")
    decoding = Decoding(max_tokens=5, temperature=1.0, top_k=0, seed=3)
    found = asyncio.run(model.sample(prompt, 24, decoding, [spec]))
    assert {one.thought_cut for one in found.generations} == {True, False}
    for one in found.generations:
        assert "</think>" not in one.thought
        assert begun(one.text) is None
        assert one.thought_tokens <= 24
        assert one.generated_tokens - one.thought_tokens - len(one.tokens) in (0, 1)  # the end of sequence
        assert len(one.tokens) <= 5
    # The states are those of the answer, behind its own thought.
    place = next(number for number, one in enumerate(found.generations) if one.tokens and "think" not in one.thought)
    one = found.generations[place]
    text = backend._renderer.render(Begun.of(prompt, thinks=True, labelled=False))
    ids = tokenizer(f"{text}{one.thought}\n</think>\n\n", add_special_tokens=False)["input_ids"]
    ids += [token.id for token in one.tokens] + ([3] if one.finish == "eos" else [])
    with torch.inference_mode():
        logits = backend._model(torch.tensor([ids])).logits[0].log_softmax(-1)
    start = len(ids) - len(one.tokens) - (one.finish == "eos")
    for at, token in enumerate(one.tokens):
        assert logits[start + at - 1, token.id].item() == pytest.approx(token.logprob, abs=1e-3)
    asyncio.run(model.aclose())


@pytest.fixture(scope="module")
def thoughtless() -> tuple[Any, Any]:
    tokenizer = family("qwq")
    return tokenizer, renderer_of(ModelSettings(), tokenizer, None)


@pytest.fixture(scope="module")
def running() -> Any:
    return build_model("llama")


class TestOff(NetworkConformance):
    """With thinking off, all that holds of any model holds behind a closed thought."""

    @pytest.fixture
    def network(self, llama: Any, thoughtless: tuple[Any, Any]) -> Network:
        return Network(llama, *thoughtless, CONTEXT)

    @pytest_asyncio.fixture
    async def model(self, running: Any, thoughtless: tuple[Any, Any]) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        tokenizer, renderer = thoughtless
        backend = TransformersBackend(running, tokenizer, renderer, name="tiny")
        model = thinking_first(Batched(backend), renderer)
        assert isinstance(model, ThinksFirst)
        yield model
        await model.aclose()


class TestOn(LanguageModelConformance):
    @pytest_asyncio.fixture
    async def model(self) -> AsyncIterator[LanguageModel]:
        model, _, _ = network_that_thinks(special=True, tokens=8)
        yield model
        await model.aclose()

    async def test_a_generation_is_consistent(self, model: LanguageModel) -> None:
        for prompt in PROMPTS:
            found = await model.generate(prompt, GREEDY)
            assert found.generated_tokens <= found.thought_tokens + GREEDY.max_tokens
            assert bool(found.thought_tokens) is not bool(prompt.answer_so_far)
            assert "".join(token.text for token in found.tokens) == found.text

    async def test_states_of_a_prompt_are_those_that_predict_its_first_token(self, model: LanguageModel) -> None:
        """They come after an empty thought, as with thinking off; what continues an answer does, too."""
        await super().test_states_of_a_prompt_are_those_that_predict_its_first_token(_Continued(model))


class _Continued(Wrapper):
    """Begins every answer."""

    def _rewritten(self, prompt: Prompt) -> Prompt:
        return replace(prompt, answer_so_far="w1")


def test_special_tokens_that_mark_thoughts_have_text() -> None:
    tokenizer = family("plain")
    tokenizer.add_tokens(["[THINK]", "[/THINK]"], special_tokens=True)
    detokenizer = Detokenizer(tokenizer)
    ids = tokenizer("[THINK] w1 w2 [/THINK] w3 <eos>", add_special_tokens=False)["input_ids"]
    text = detokenizer.text([], ids)
    assert "".join(text.split()) == "[THINK]w1w2[/THINK]w3"
    assert "".join(detokenizer.split([], ids, text)) == text
    assert detokenizer.made_of_marks(["[/THINK]"])
    assert not detokenizer.made_of_marks(["\n"])
