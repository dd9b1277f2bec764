from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest_asyncio

from gnothi import testing
from gnothi.protocols import LanguageModel
from gnothi.testing import conformance
from gnothi.testing.conformance.language_model import LanguageModelConformance
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Decoding, Prompt, StateSpec, Task
from tests.messages import refused
from tests.test_imports import loaded_after

ASK = Prompt(Task("answer"), "Who wrote Emma?")


class TestConformance(LanguageModelConformance):
    @pytest_asyncio.fixture
    async def model(self) -> AsyncIterator[LanguageModel]:
        model = Scripted(lambda prompt: [Reply(f"About {prompt.question} they say nothing.", doubt=0.5), "Or this."])
        yield model
        await model.aclose()


async def test_mapping_by_question_and_by_task() -> None:
    model = Scripted({"Who wrote Emma?": "Austen", ("know", "Who wrote Emma?"): "Yes, I know"}, default="unknown")
    assert isinstance(model, LanguageModel)
    assert (await model.generate(ASK, Decoding())).text == "Austen"
    assert (await model.generate(Prompt(Task("know"), ASK.question), Decoding())).text == "Yes, I know"
    assert (await model.generate(Prompt(Task("answer"), "Else?"), Decoding())).text == "unknown"
    assert [prompt.question for prompt in model.prompts] == [ASK.question, ASK.question, "Else?"]


async def test_a_missing_line_names_task_and_question() -> None:
    with refused(KeyError):
        await Scripted({}).generate(ASK, Decoding())


async def test_function_sees_the_whole_prompt_and_alternatives_come_in_turn() -> None:
    model = Scripted(lambda prompt: [prompt.question.upper(), "b"])
    samples = await model.sample(ASK, 3, Decoding(temperature=1.0))
    assert [g.text for g in samples.generations] == ["WHO WROTE EMMA?", "b", "WHO WROTE EMMA?"]
    assert samples.states == ()


async def test_stop_and_length() -> None:
    model = Scripted(lambda _: "One two. Three")
    stopped = await model.generate(ASK, Decoding(stop=(". ",)))
    assert (stopped.text, stopped.finish) == ("One two", "stop")
    short = await model.generate(ASK, Decoding(max_tokens=1))
    assert (short.text, short.finish, len(short.tokens)) == ("One", "length", 1)


async def test_tokens_carry_the_logprobs_and_make_up_the_text() -> None:
    model = Scripted(lambda _: Reply("a b c", logprobs=(-1.0, -2.0)))
    generation = await model.generate(ASK, Decoding())
    assert [token.logprob for token in generation.tokens] == [-1.0, -2.0, -2.0]
    assert "".join(token.text for token in generation.tokens) == generation.text


async def test_doubt_spreads_the_states() -> None:
    (sure,) = (await Scripted(lambda _: "x").sample(ASK, 5, Decoding(), [StateSpec()])).states
    (unsure,) = (await Scripted(lambda _: Reply("x", doubt=1.0)).sample(ASK, 5, Decoding(), [StateSpec()])).states
    assert sure is not None
    assert unsure is not None
    assert sure.shape == unsure.shape == (5, 32)
    assert sure.dtype == np.float32
    assert np.ptp(sure, axis=0).max() == 0
    assert np.linalg.matrix_rank(unsure) == 5


async def test_scores() -> None:
    scores = await Scripted(lambda _: "Yes, I know").score(ASK, ["Yes", "No way", ""])
    assert scores[0].logprob > scores[1].logprob
    assert len(scores[1].logprobs) == 2
    assert scores[2].logprobs == ()
    (custom,) = await Scripted(lambda _: "", scorer=lambda _, c: -float(len(c))).score(ASK, ["four"])
    assert custom.logprob == -4.0


def test_fakes_need_no_pytest() -> None:
    assert "pytest" not in loaded_after("import gnothi.testing")
    assert set(testing.__all__) <= set(vars(testing))


def test_suites_are_for_subclasses_alone() -> None:
    suites = [vars(conformance)[name] for name in conformance.__all__]
    assert all(isinstance(suite, type) and not suite.__name__.startswith("Test") for suite in suites)
    assert "pytest" in loaded_after("import gnothi.testing.conformance")
