from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.concurrency import Job
from gnothi.errors import ModelUnavailable
from gnothi.models.batched import Request, Result, Score
from gnothi.models.engine.text import Detokenizer, StopWatch
from gnothi.models.vllm.backend import NAMED, Drawn, Weigh, assemble, fed, questions, read, seed_of
from gnothi.testing.conformance.language_model import PROMPTS
from gnothi.types import Finish, Generation, Position
from tests.models.tiny import VOCABULARY

PROMPT = (2, 4, VOCABULARY.index("who"))
EOS = 3


def completion(words: str, finish_reason: str = "length", logprob: float = -1.0) -> Any:
    ids = [VOCABULARY.index(word) for word in words.split()]
    logprobs = [{token: SimpleNamespace(logprob=logprob)} for token in ids]
    return SimpleNamespace(token_ids=ids, logprobs=logprobs, finish_reason=finish_reason)


def drawn(tokenizer: Any, words: str, finish_reason: str = "length", stop: tuple[str, ...] = ()) -> Drawn:
    detokenizer = Detokenizer(tokenizer)
    watch = StopWatch(stop, detokenizer) if stop else None
    result = read(completion(words, finish_reason), PROMPT, (EOS,), detokenizer, watch)
    assert isinstance(result, Drawn)
    return result


@pytest.mark.parametrize(
    ("words", "finish_reason", "stop", "text", "finish", "count"),
    [
        ("w1 w2 <eos>", "stop", (), " w1 w2", "eos", 3),
        ("w1 w2 w3", "length", (), " w1 w2 w3", "length", 3),
        ("w1 w2 .", "stop", (" .",), " w1 w2", "stop", 3),
        # vLLM may notice later, or at the limit, or not at all: the text is cut all the same.
        ("w1 w2 . w3 w4", "stop", (" .",), " w1 w2", "stop", 3),
        ("w1 w2 .", "length", ("2 .",), " w1 w", "stop", 3),
        ("w1 w2", "stop", ("never",), " w1 w2", "stop", 2),
        ("<eos>", "stop", (), "", "eos", 1),
    ],
)
def test_a_completion_becomes_a_generation(
    tokenizer: Any, words: str, finish_reason: str, stop: tuple[str, ...], text: str, finish: Finish, count: int
) -> None:
    result = drawn(tokenizer, words, finish_reason, stop)
    generation = result.generation
    assert (generation.text, generation.finish, generation.generated_tokens) == (text, finish, count)
    assert "".join(token.text for token in generation.tokens) == text
    assert all(token.logsumexp is None for token in generation.tokens)
    assert generation.prompt_tokens == 3
    assert len(result.ids) == count


def test_probabilities_that_are_no_numbers(tokenizer: Any) -> None:
    result = read(completion("w1", logprob=float("nan")), PROMPT, (EOS,), Detokenizer(tokenizer), None)
    assert isinstance(result, ModelUnavailable)
    assert "{'dtype': 'float32'}" in str(result)


def test_scores_that_are_no_numbers() -> None:
    """The least of 0 and NaN is 0 in Python, or NaN, as they stand."""
    job: Job[Request, Result] = Job(Score(PROMPTS[0], ("w1",)))
    weigh = Weigh(job, Score(PROMPTS[0], ("w1",)), PROMPT, [[7]], prefixes={"one": ()})
    weigh.receive(
        SimpleNamespace(request_id="one", outputs=[SimpleNamespace(logprobs=[{7: SimpleNamespace(logprob=math.nan)}])])
    )
    weigh.finish()
    assert isinstance(job.future.exception(), ModelUnavailable)


@pytest.mark.parametrize(("position", "sequence"), [("fed_eos", (7, 8, 3)), ("predicting", (7, 8))])
def test_the_sequence_that_is_fed_again_ends_where_the_state_is(position: Position, sequence: tuple[int, ...]) -> None:
    assert position in get_args(Position)
    assert fed((7,), Drawn(Generation("x"), (8, 9)), position, (3, 5)) == sequence


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_seeds_are_mixed_and_leave_room(first: int, second: int) -> None:
    assert 0 <= seed_of(first) < 2**62
    assert (seed_of(first) == seed_of(second)) == (first == second)


def test_neighbours_share_no_samples() -> None:
    assert abs(seed_of(1) - seed_of(2)) > 10**6
    assert seed_of(None) == seed_of(0)


TOKENS = st.lists(st.integers(0, 3), max_size=5)


def test_what_is_shared_is_asked_once() -> None:
    assert questions([[5], [6], [5]]) == [((), [5, 6])]
    assert questions([[5, 7], [5, 8], []]) == [((), [5]), ((5,), [7, 8])]
    assert questions([]) == []


def test_long_lists_of_names_are_split() -> None:
    asked = questions([[token] for token in range(NAMED + 1)])
    assert [len(named) for _, named in asked] == [NAMED, 1]


@given(st.lists(TOKENS, max_size=6))
def test_the_replies_make_up_every_continuation(continuations: list[list[int]]) -> None:
    replies = {
        (prefix, token): -float(hash((prefix, token)) % 97) for prefix, named in questions(continuations) for token in named
    }
    scores = assemble(continuations, replies)
    assert [len(score) for score in scores] == [len(tokens) for tokens in continuations]
    for tokens, score in zip(continuations, scores, strict=True):
        for at, (token, number) in enumerate(zip(tokens, score, strict=True)):
            assert number == replies[tuple(tokens[:at]), token]
