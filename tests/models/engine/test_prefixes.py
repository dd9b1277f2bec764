"""What is kept of prompts that were read, and that reusing it changes nothing."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from typing import Any

import pytest
import pytest_asyncio
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnothi.concurrency import Inbox
from gnothi.models.batched import Batched, Continue, Request, Result, Score
from gnothi.models.engine import forked
from gnothi.models.engine.prefixes import Prefixes, Segment
from gnothi.models.rendering import Tagged
from gnothi.protocols import LanguageModel
from gnothi.testing.conformance.language_model import GREEDY, WARM, Network, NetworkConformance
from gnothi.types import Decoding, Passage, Position, Prompt, Samples, StateSpec, Task
from tests.models.tiny import ARCHITECTURES, CONTEXT, backend_of, build_model

pytestmark = pytest.mark.usefixtures("one_trial")

# --- the tree ----------------------------------------------------------------------------------------------------------


def segment(tokens: Sequence[int], start: int = 0) -> Segment:
    """Keys and values that tell which token they belong to, and at which position: two layers, one head."""
    rows = [[float(token), float(place)] for place, token in enumerate(tokens)][start:]
    return Segment([torch.tensor([rows])] * 2, [-torch.tensor([rows])] * 2, start, len(rows))


BYTES = segment([1]).bytes
PROMPTS = st.lists(st.integers(0, 2), min_size=1, max_size=9)


def shared(first: Sequence[int], second: Sequence[int]) -> int:
    pairs = zip(first, second, strict=False)
    return next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(first), len(second)))


@given(st.lists(st.tuples(PROMPTS, st.booleans()), max_size=30))
def test_a_tree_gives_back_the_longest_beginning_that_was_added(calls: list[tuple[list[int], bool]]) -> None:
    tree, cached = Prefixes(10**9), list[list[int]]()
    for tokens, adds in calls:
        longest = max((shared(tokens, one) for one in cached), default=0)
        assert tree.matched(tokens) == longest
        found = tree.match(tokens)
        assert sum(piece.length for piece in found) == longest
        for layer in (0, 1):
            keys = [row for piece in found for row in piece.keys[layer][0].tolist()]
            assert keys == [[token, place] for place, token in enumerate(tokens[:longest])]
            assert [piece.start for piece in found] == [int(piece.keys[layer][0, 0, 1]) for piece in found]
        again = tree.match(tokens)
        assert all(one is two for one, two in zip(found, again, strict=True))
        if adds:
            tree.add(tokens, segment(tokens, longest))
            cached.append(tokens)
    # What is shared is held once.
    assert tree.bytes == BYTES * len({tuple(one[:end]) for one in cached for end in range(1, len(one) + 1)})


@given(st.lists(PROMPTS, min_size=1, max_size=30), st.integers(1, 20))
def test_a_tree_keeps_to_its_budget_and_forgets_the_oldest_first(prompts: list[list[int]], tokens: int) -> None:
    tree = Prefixes(tokens * BYTES)
    for prompt in prompts:
        tree.add(prompt, segment(prompt, tree.matched(prompt)))
        tree.shrink()
        assert tree.bytes <= tree.budget
        # What was used last is the last to go: some of it stays, unless nothing of it fits.
        if len(prompt) <= tokens:
            assert tree.matched(prompt) > 0
    assert all(piece.bytes <= tree.budget for prompt in prompts for piece in tree.match(prompt))
    tree.clear()
    assert tree.bytes == 0
    assert tree.match(prompts[0]) == ()


def test_without_a_budget_nothing_is_kept() -> None:
    tree = Prefixes(0)
    tree.add([1, 2], segment([1, 2]))
    assert tree.bytes == 0


def test_nothing_is_added_behind_a_gap() -> None:
    tree = Prefixes(10**6)
    tree.add([1, 2, 3, 4], segment([1, 2, 3, 4], 2))
    assert tree.matched([1, 2, 3, 4]) == 0


def test_what_is_used_stays() -> None:
    tree = Prefixes(6 * BYTES)
    tree.add([1, 1, 1], segment([1, 1, 1]))
    tree.add([2, 2, 2], segment([2, 2, 2]))
    tree.match([1, 1, 1])
    tree.add([3, 3, 3], segment([3, 3, 3]))
    tree.shrink()
    assert [tree.matched([number] * 3) for number in (1, 2, 3)] == [3, 0, 3]


# --- the path ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every beginning of three tokens is shared, pieces of nine are trunks, five tokens are read at a time."""
    monkeypatch.setattr(forked, "SHORTEST_PREFIX", 3)
    monkeypatch.setattr(forked, "_TRUNK", 9)
    monkeypatch.setattr(forked, "_CHUNK", 5)


# Half of its layers see a window only, half see everything.
@pytest.fixture(scope="module")
def reference() -> Any:
    return build_model("gemma3")


@pytest.fixture(scope="module")
def running() -> Any:
    return build_model("gemma3")


@pytest.mark.usefixtures("eager")
class TestConformance(NetworkConformance):
    """The whole suite with a cache that takes part in every request."""

    @pytest.fixture
    def network(self, reference: Any, tokenizer: Any) -> Network:
        return Network(reference, tokenizer, Tagged(), CONTEXT)

    @pytest_asyncio.fixture
    async def model(self, running: Any, tokenizer: Any) -> AsyncIterator[LanguageModel]:  # type: ignore[override]
        model = Batched(backend_of(running, tokenizer))
        yield model
        await model.aclose()


def requests(small: bool) -> list[Request]:
    """Prompts that share beginnings of several lengths, and some that are others' beginnings."""
    times = 1 if small else 3
    static = tuple(Passage(f"p{number}", f"w{number} is the city of w{number + 1} . " * times, "w7") for number in range(4))
    found: list[Request] = []
    for number in range(5):
        passages = static[:number]
        steps = "w20 is the w21 . w22 is w23 ."[: 9 * (number % 4)].strip()
        prompt = Prompt(Task("reason"), f"who is w{number % 3} ?", passages=passages, answer_so_far=steps)
        found += [Continue(prompt, 1, GREEDY), Continue(prompt, 4, WARM, (StateSpec(),))]
        found += [Score(prompt, ("Yes", "w1 w2 w3", "w4"))]
    return found


def close(first: Any, second: Any) -> None:
    if isinstance(first, Samples):
        assert [one.text for one in first.generations] == [one.text for one in second.generations]
        for one, two in zip(first.generations, second.generations, strict=True):
            assert one.logprob == pytest.approx(two.logprob, abs=1e-4)
        for state, again in zip(first.states, second.states, strict=True):
            torch.testing.assert_close(torch.tensor(state), torch.tensor(again), atol=1e-3, rtol=1e-3)
    else:
        for one, two in zip(first, second, strict=True):
            assert one.logprobs == pytest.approx(two.logprobs, abs=1e-4)


@pytest.fixture(scope="module")
def read_whole(tokenizer: Any) -> Callable[[str, bool], Sequence[Any]]:
    """What a network replies to each request alone, with nothing kept."""

    @cache
    def replies(name: str, small: bool) -> Sequence[Any]:
        plain = backend_of(build_model(name), tokenizer, attention="repeated")
        return [plain.run([one])[0] for one in requests(small)]

    return replies


@pytest.mark.parametrize(
    ("name", "tokens", "small"),
    [*((name, None, True) for name in ARCHITECTURES), ("gemma3", 60, True), ("llama", None, False), ("gemma3", None, False)],
)
def test_reusing_what_was_read_changes_nothing(
    name: str,
    tokenizer: Any,
    tokens: int | None,
    small: bool,
    request: pytest.FixtureRequest,
    read_whole: Callable[[str, bool], Sequence[Any]],
) -> None:
    if small:
        request.getfixturevalue("eager")
    asked, expected = requests(small), read_whole(name, small)
    backend = backend_of(build_model(name), tokenizer, attention="forked", prefix_cache_mb=64)
    path = backend._engine.path
    assert isinstance(path, forked.Forked)
    kept = path._prefixes
    if tokens:  # less than a prompt: what is held goes all the time
        kept.budget = tokens * 512
    # All at once, one by one with everything held, and in another order with others.
    for first, second in zip(expected, backend.run(asked), strict=True):
        close(first, second)
    for first, one in zip(expected, asked, strict=True):
        close(first, backend.run([one])[0])
    order = random.Random(3).sample(range(len(asked)), len(asked))
    for number, result in zip(order, backend.run([asked[number] for number in order]), strict=True):
        close(expected[number], result)
    assert backend.statistics["reused_tokens"]
    assert 0 < kept.bytes <= kept.budget


def test_demonstrations_are_read_once(tokenizer: Any, llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when all questions that share them arrive at the same time."""
    backend = backend_of(llama, tokenizer)
    read: list[int] = []
    original = backend._network.forward

    def forward(tokens: Any, *arguments: Any, **options: Any) -> Any:
        read.append(tokens.numel())
        return original(tokens, *arguments, **options)

    monkeypatch.setattr(backend._network, "forward", forward)
    static = tuple(Passage(f"p{number}", "w1 is the city of w2 . " * 4, "w7") for number in range(6))
    prompts = [Prompt(Task("answer"), f"who is w{number} ?", passages=static) for number in range(20)]
    ids = tokenizer([Tagged().render(prompt) for prompt in prompts])["input_ids"]
    assert all(row[:150] == ids[0][:150] for row in ids)
    backend.run([Continue(prompt, 1, Decoding(max_tokens=1)) for prompt in prompts])
    assert sum(read) <= len(ids[0]) + 19 * 12
    read.clear()
    backend.run([Continue(prompt, 1, Decoding(max_tokens=1)) for prompt in prompts])
    assert sum(read) == 20


@pytest.mark.parametrize(("position", "times"), [("fed_eos", 1), ("predicting", 2)])
def test_samples_that_come_after_the_greedy_answer_do_not_read_its_prompt_again(
    position: Position, times: int, tokenizer: Any, llama: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the state of the prompt's own end, if that may be the answer's, takes another reading."""
    backend = backend_of(llama, tokenizer)
    read: list[int] = []
    original = backend._network.prefill

    def prefill(prompts: Any, **options: Any) -> Any:
        read.append(len(prompts))
        return original(prompts, **options)

    monkeypatch.setattr(backend._network, "prefill", prefill)
    inbox: Inbox[Request, Result] = Inbox()
    prompt = Prompt(Task("answer"), "who is w1 ?")
    with torch.inference_mode():
        greedy = inbox.put(Continue(prompt, 1, Decoding(max_tokens=12)))
        backend._receive(inbox.take())
        backend._engine.advance()
        assert not greedy.settled
        samples = inbox.put(Continue(prompt, 5, WARM, (StateSpec(position=position),)))
        backend._receive(inbox.take())
        while backend._engine.busy:
            backend._engine.advance()
    assert read == [1] * times
    (alone,) = backend_of(llama, tokenizer).run([samples.request])
    close(samples.future.result(), alone)
