"""The model that is trained: its prompts as tokens, and its replies to validation questions at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gnothi.errors import InvalidInput
from gnothi.methods.steps.prompts import ask
from gnothi.models.encoding import Encoder
from gnothi.models.rendering import Renderer
from gnothi.signals.kinds.self_report import AFFIRMATIVE, KNOW, NEGATIVE
from gnothi.stats.auroc import auroc
from gnothi.training.self_knowledge.answers import Familiar, TrainingQuestion
from gnothi.training.self_knowledge.reward import Correctness, judge, reward
from gnothi.types import Passage, Question

_ROWS = 64


class Prompts:
    """The question "do you know?" as the model reads it, which is what ``self_report`` asks and SKILL-RAG filters with."""

    def __init__(self, tokenizer: Any, renderer: Renderer) -> None:
        self.tokenizer, self._renderer = tokenizer, renderer
        self._encoder = Encoder(tokenizer, renderer, [tokenizer.eos_token_id])

    def text(self, question: Question, passages: Sequence[Passage] = ()) -> str:
        return self._renderer.render(ask(KNOW, question, passages))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self._encoder.encode(texts)

    def with_reply(self, item: TrainingQuestion, reply: str) -> tuple[list[int], list[int]]:
        """Token ids of prompt and reply, and labels that are -100 over the prompt; the reply is closed."""
        text = self.text(item.question, item.passages)
        (prompt,) = self.encode([text])
        (reply_tokens,) = self._encoder.continuations(text, prompt, [reply])
        reply_tokens = [*reply_tokens, self.tokenizer.eos_token_id]
        return [*prompt, *reply_tokens], [-100] * len(prompt) + reply_tokens

    def first_tokens(self) -> tuple[int, int]:
        """The ids with which "Yes" and "No" begin after a prompt. Raises InvalidInput where they are the same."""
        text = self.text(Question("", "Who?"))
        (ids,) = self.encode([text])
        yes, no = (tokens[0] for tokens in self._encoder.continuations(text, ids, [AFFIRMATIVE, NEGATIVE]))
        if yes == no:
            raise InvalidInput(
                "this model's tokenizer begins Yes and No with the same token, so that P(Yes) cannot be read off one token. "
                "Use another model."
            )
        return yes, no


@dataclass(frozen=True, slots=True)
class Replies:
    """A model's reply to each question (greedily), and its P("Yes") among Yes and No."""

    texts: list[str]
    yes: list[float]


@torch.no_grad()
def reply_to(model: Any, prompts: Prompts, items: Sequence[TrainingQuestion], max_tokens: int) -> Replies:
    """Greedy replies; uses no random numbers, so that asking does not change the training it interrupts."""
    yes, no = prompts.first_tokens()
    tokenizer = prompts.tokenizer
    texts: list[str] = []
    probabilities: list[float] = []
    encoded = prompts.encode([prompts.text(one.question, one.passages) for one in items])
    training = model.training
    model.eval()
    for start in range(0, len(encoded), _ROWS):
        rows = encoded[start : start + _ROWS]
        width = max(map(len, rows))
        pad = tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (width - len(row)) + row for row in rows], device=model.device)
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=model.device)
        output = model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=max_tokens,
            pad_token_id=pad,
            return_dict_in_generate=True,
            output_logits=True,
        )
        first = output.logits[0].float()
        probabilities += torch.sigmoid(first[:, yes] - first[:, no]).tolist()
        texts += tokenizer.batch_decode(output.sequences[:, width:], skip_special_tokens=True)
    model.train(training)
    return Replies(texts, probabilities)


def assess(replies: Replies, examples: Sequence[Familiar], correct: Correctness) -> dict[str, float | None]:
    """What validation reports: mean ``validation_reward``; mean P("Yes") where the question is known (``yes_known``) and where
    not; ``auroc`` of P("Yes") for known; ``refusal``, the share of the known that get No; ``hallucination``, the share of all
    that get a wrong Yes; ``no`` and ``neither``, shares of all. None where there is nothing to take a share of."""
    verdicts = [
        judge(text, example.question.answers, example.question.choices, correct)
        for text, example in zip(replies.texts, examples, strict=True)
    ]
    known = np.array([example.known for example in examples])
    yes = np.array(replies.yes)
    is_no = np.array([verdict == "no" for verdict in verdicts])
    return {
        "validation_reward": float(
            np.mean([reward(verdict, example.acc_rate) for verdict, example in zip(verdicts, examples, strict=True)])
        ),
        "yes_known": _mean(yes[known]),
        "yes_unknown": _mean(yes[~known]),
        "auroc": auroc(yes, known),
        "refusal": _mean(is_no[known]),
        "hallucination": _mean(np.array([verdict == "wrong" for verdict in verdicts])),
        "no": _mean(is_no),
        "neither": _mean(np.array([verdict == "neither" for verdict in verdicts])),
    }


def _mean(values: Any) -> float | None:
    return float(values.mean()) if len(values) else None
