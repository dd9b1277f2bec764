"""How well a model reads: it is asked as the method asks, so that validation measures what evaluation will."""

from __future__ import annotations

from collections.abc import Sequence

from gnothi.concurrency import gather
from gnothi.methods.steps.multiple_choice import ChoiceScore, scores_of
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.settings import SHORT_STOPS
from gnothi.metrics import exact_match
from gnothi.protocols import LanguageModel
from gnothi.training.reader.material import Example
from gnothi.types import ContinuationScore, Decoding

CONCURRENCY = 64
"""Questions under way at a time: each is a whole prompt in memory."""


async def assess(
    model: LanguageModel, examples: Sequence[Example], by: ChoiceScore, max_tokens: int
) -> tuple[list[float], list[float]]:
    """For each example, whether the answer is right (1 or 0), and the loss: the mean negative log-probability (nats) of the
    gold answer's tokens. Right is the likeliest choice, or where there are none an exact match of what is generated."""
    pending = iter(enumerate(examples))
    found: dict[int, tuple[float, float]] = {}

    async def work() -> None:
        for place, example in pending:
            found[place] = await _assess(model, example, by, max_tokens)

    await gather(*(work() for _ in range(min(CONCURRENCY, len(examples)))))
    ordered = [found[place] for place in range(len(examples))]
    return [right for right, _ in ordered], [loss for _, loss in ordered]


async def _assess(model: LanguageModel, example: Example, by: ChoiceScore, max_tokens: int) -> tuple[float, float]:
    choices, target = example.prompt.choices, example.target
    if choices:
        scored = await model.score(example.prompt, choices)
        scores = scores_of(choices, scored, by)
        chosen = choices[scores.index(max(scores))]
        return float(chosen == target), _loss(scored[choices.index(target)])
    reply = await model.generate(example.prompt, Decoding(max_tokens, stop=SHORT_STOPS))
    (gold,) = await model.score(example.prompt, (target,))
    return exact_match(read_reply(reply.text).answer, example.question.answers), _loss(gold)


def _loss(score: ContinuationScore) -> float:
    return -score.mean_logprob
