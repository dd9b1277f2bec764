"""What validation asks and counts, on the laboratory's own model."""

from __future__ import annotations

import asyncio

import pytest

from gnothi import lab
from gnothi.models import LAB_FOLDER, ModelSettings, load_model
from gnothi.models.engine.loading import load
from gnothi.models.rendering import Tagged
from gnothi.signals.kinds.self_report import AFFIRMATIVE, KNOW, NEGATIVE, probability_of_yes
from gnothi.training.self_knowledge.answers import Familiar, TrainingQuestion
from gnothi.training.self_knowledge.policy import Prompts, Replies, assess, reply_to
from gnothi.training.self_knowledge.reward import Correctness
from gnothi.types import Decoding, Prompt, Question

QUESTIONS = lab.training_questions(lab.world(), "one_hop", 12)


def test_validation_sees_what_the_signal_sees() -> None:
    """P("Yes") and replies are those of the model behind ``self_report``, batched and padded or not."""
    model, tokenizer, _ = load(str(LAB_FOLDER), "lab", ModelSettings(pack_weights=False))
    found = reply_to(model, Prompts(tokenizer, Tagged()), list(map(TrainingQuestion, QUESTIONS)), 12)
    opened = load_model("lab")

    async def ask(question: Question) -> tuple[str, float]:
        prompt = Prompt(KNOW, question.text)
        reply = await opened.generate(prompt, Decoding(max_tokens=12))
        yes, no = await opened.score(prompt, (AFFIRMATIVE, NEGATIVE))
        return reply.text.strip(), probability_of_yes(yes.logprob, no.logprob)

    async def ask_all() -> list[tuple[str, float]]:
        try:
            return [await ask(question) for question in QUESTIONS]
        finally:
            await opened.aclose()

    expected = asyncio.run(ask_all())
    assert [text.strip() for text in found.texts] == [text for text, _ in expected]
    assert found.yes == pytest.approx([p for _, p in expected], abs=1e-4)


def test_prompt_and_reply_as_tokens() -> None:
    _, tokenizer, _ = load(str(LAB_FOLDER), "lab", ModelSettings())
    prompts = Prompts(tokenizer, Tagged())
    ids, labels = prompts.with_reply(TrainingQuestion(QUESTIONS[0]), "No, I don't know.")
    learnt = [label for label in labels if label != -100]
    assert tokenizer.decode(learnt) == "No, I don't know.<eos>"
    assert ids[-len(learnt) :] == learnt
    assert ids[: -len(learnt)] == prompts.encode([prompts.text(QUESTIONS[0])])[0]


def test_figures_by_hand() -> None:
    def example(right: int) -> Familiar:
        return Familiar(Question("q", "Who?", ("Ada",)), ("Ada",) * 4, (True,) * right + (False,) * (4 - right))

    replies = Replies(["Yes, I know: Ada.", "No, I don't know.", "Yes, I know: Bob.", "Hm."], [0.9, 0.4, 0.8, 0.2])
    figures = assess(replies, [example(4), example(3), example(1), example(0)], Correctness())
    assert figures == {
        "validation_reward": pytest.approx((1 - 0.5 - 1 - 1) / 4),
        "yes_known": pytest.approx(0.65), "yes_unknown": pytest.approx(0.5),
        "auroc": 0.75, "refusal": 0.5, "hallucination": 0.25, "no": 0.25, "neither": 0.25,
    }  # fmt: skip
    assert assess(Replies(["Hm."], [0.2]), [example(4)], Correctness())["auroc"] is None
