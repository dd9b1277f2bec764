"""Forked decoding: a prompt's keys and values are kept once, its rows read them together and keep only their own.

Rows may stand at different lengths, so new ones join at any step. What was read once stays, within a budget, for prompts that
begin alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnothi.models.engine.attention import IMPLEMENTATION, Fed, Handing, Step, Unsupported, active, attend, librarys
from gnothi.models.engine.continuations import Continuations
from gnothi.models.engine.passes import Network, by_length
from gnothi.models.engine.path import DecodePath, PrefillSteps, run_to_end
from gnothi.models.engine.prefixes import Prefixes, Segment
from gnothi.models.engine.prompts import CachedPrompt, Level, SuffixPool, lay_out, pool_width
from gnothi.models.engine.states import Captured

# Fewer tokens than that are sooner read again than looked up, copied and attended to separately.
SHORTEST_PREFIX = 64
# A piece of a prompt of that length is read where it lies, a shorter one is copied to a pool.
_TRUNK = 256
# Tokens a row is fed in one pass over what is held: bounds the square of its own attention.
_CHUNK = 512
# So many prompts are worth a pass of their own over what they begin with.
_MANY = 16

_Begun = tuple[tuple[int, ...], tuple[Segment, ...]]
"""A prompt, and what is held of its beginning."""


class Forked(DecodePath):
    """Rows over shared prompts."""

    name = "forked"
    shares_prompts = True

    def __init__(self, network: Network, budget: int = 0, shortest: int | None = None, trunk: int | None = None) -> None:
        """``shortest`` and ``trunk`` take the place of what is usual, for a trial with short texts."""
        self._network = network
        self._shortest, self._trunk = shortest or SHORTEST_PREFIX, trunk or _TRUNK
        self.budget = budget
        self._prefixes = Prefixes(budget)
        self._own = Continuations(network.device)
        self._numbers = 0
        self.reused_tokens = 0
        self.clear()

    def clear(self) -> None:
        """End all rows. Buffers have grown to the most rows and the longest row there were: they are given back."""
        self._own.clear()
        self._pools: dict[int, SuffixPool] = {}
        self._cached: dict[tuple[int, ...], CachedPrompt] = {}
        self._by_number: dict[int, CachedPrompt] = {}
        self._of_row = np.zeros(0, np.int64)
        self._levels: list[Level] | None = None
        self._coming: frozenset[tuple[int, ...]] = frozenset()  # prompts that will have rows

    def forget(self) -> None:
        self._prefixes.clear()

    @property
    def cached_tokens(self) -> int:
        trunks = {id(segment): segment.length for cached in self._by_number.values() for segment in cached.trunk}
        return sum(trunks.values()) + sum(pool.room for pool in self._pools.values())

    def new_tokens(self, prompt: tuple[int, ...]) -> int:
        if prompt in self._cached:
            return 0
        matched = self._prefixes.matched(prompt[:-1]) if len(prompt) > self._shortest else 0
        return len(prompt) - (matched if matched >= self._shortest else 0)

    def room(self, new: int) -> int:
        """Of a pool that may be wider."""
        return pool_width(new) if new else 0

    # --- rows ------------------------------------------------------------------------------------------------------

    def admit(self, prompts: Sequence[tuple[int, ...]]) -> PrefillSteps[tuple[Tensor, Captured]]:
        """A prompt that other rows are reading already is not read again, nor is a beginning that is still held."""
        self._coming = frozenset(prompts)
        try:
            cached_prompts = yield from self._hold(prompts)
        except GeneratorExit:
            self._coming = frozenset()
            self._release()
            raise
        self._coming = frozenset()
        self._of_row = np.concatenate([self._of_row, [cached.number for cached in cached_prompts]])
        self._own.add(len(cached_prompts))
        self._levels = None
        self._prefixes.shrink()
        states = {hook: torch.stack([cached.states[hook] for cached in cached_prompts]) for hook in self._network.wanted}
        return _logits(cached_prompts), states

    def step(self, tokens: Tensor) -> tuple[Tensor, Captured]:
        device, own = self._network.device, self._own
        if self._levels is None:
            self._levels, self._lengths = self._layout(self._of_row)
        own.begin()
        positions = self._lengths + own.fed
        position = torch.from_numpy(positions).to(device)[:, None]
        logits, states = self._pass(Step(own, self._levels, position, int(positions.max())), tokens[:, None])
        own.end()
        return logits[:, -1], {hook: state[:, -1] for hook, state in states.items()}

    def keep(self, rows: Tensor) -> None:
        indices = rows.cpu().numpy()
        self._own.keep(indices)
        self._of_row = self._of_row[indices]
        self._release()

    def read(self, prompts: Sequence[tuple[int, ...]]) -> Reading:
        return Reading(self, run_to_end(self._hold(prompts)))

    def ahead(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Tensor]]:
        """What many of the prompts begin with is read once and kept; nothing else is."""
        short = [place for place, prompt in enumerate(prompts) if not self._keeps(prompt)]
        for chunk, logits in self._network.ahead([prompts[place] for place in short], tokens):
            yield [short[at] for at in chunk], logits
        places: dict[tuple[int, ...], list[int]] = {}
        for place, prompt in enumerate(prompts):
            if self._keeps(prompt):
                places.setdefault(prompt, []).append(place)
        for fresh, begun in self._in_turn(list(places)):
            ends = [(prompt, trunk) for prompt, trunk in _common_trunks(begun) if len(prompt) - _end(trunk) <= _CHUNK]
            ends = ends if len(ends) >= _MANY else []
            ended = {prompt for prompt, _ in ends}
            others = fresh + [prompt for prompt, _ in begun if prompt not in ended]
            for chunk in by_length([len(prompt) for prompt in others], tokens):
                read = [others[at] for at in chunk]
                reading = self.read(read)
                yield from _spread(read, reading.logits, places)
                reading.close()
            for read, logits in self._read_ends(ends, tokens):
                yield from _spread(read, logits, places)

    def ends(self, prompts: Sequence[tuple[int, ...]], tokens: int) -> Iterator[tuple[list[int], Captured]]:
        """Long prompts are read whole, and kept for what begins like them; short ones no deeper than the states are."""
        short = [place for place, prompt in enumerate(prompts) if not self._keeps(prompt)]
        for chunk, states in self._network.ends([prompts[place] for place in short], tokens):
            yield [short[at] for at in chunk], states
        long = [place for place, prompt in enumerate(prompts) if self._keeps(prompt)]
        for batch in by_length([len(prompts[place]) for place in long], tokens):
            chunk = [long[at] for at in batch]
            cached_prompts = run_to_end(self._hold([prompts[place] for place in chunk]))
            yield (
                chunk,
                {hook: torch.stack([cached.states[hook] for cached in cached_prompts]) for hook in self._network.wanted},
            )
            self.end_reading()

    def _read_ends(self, ends: Sequence[_Begun], tokens: int) -> Iterator[tuple[list[tuple[int, ...]], Tensor]]:
        """Logits after prompts whose beginnings are held, and read where they lie."""
        cached: dict[tuple[int, ...], CachedPrompt] = {}
        for prompt, trunk in ends:
            begins = prompt[: _end(trunk)]
            if begins not in cached:
                self._numbers += 1
                cached[begins] = self._by_number[self._numbers] = CachedPrompt(begins, self._numbers, trunk)
        for chunk in by_length([len(prompt) - _end(trunk) for prompt, trunk in ends], tokens):
            read = [ends[at][0] for at in chunk]
            starts = [_end(ends[at][1]) for at in chunk]
            rest = [prompt[start:] for prompt, start in zip(read, starts, strict=True)]
            before = [cached[prompt[:start]] for prompt, start in zip(read, starts, strict=True)]
            logits, _, _ = self.feed(before, rest, last_only=True)
            self._network.read_tokens += sum(map(len, rest))
            self.reused_tokens += sum(starts)
            yield read, logits[:, -1]
        self.end_reading()

    def _layout(self, numbers: NDArray[np.int64]) -> tuple[list[Level], NDArray[np.int64]]:
        """Levels for rows that read the prompts of these numbers, and the tokens before each row."""
        used, of_row = np.unique(numbers, return_inverse=True)
        cached_prompts = [self._by_number[number] for number in used.tolist()]
        lengths = np.array([cached.read for cached in cached_prompts])
        return lay_out(cached_prompts, of_row, self._network.device), lengths[of_row]

    def _pass(self, step: Step, tokens: Tensor, *, last_only: bool = False) -> tuple[Tensor, Captured]:
        cache = librarys(step) if self._network.of_library else Handing(step)
        with active(step):
            # A mask of four dimensions is passed through by the library, which so builds none of its own.
            nothing = torch.zeros(1, 1, 1, 1, device=tokens.device)
            return self._network.forward(tokens, step.position, cache, nothing, last_only=last_only)

    # --- prompts ---------------------------------------------------------------------------------------------------

    def feed(
        self, cached_prompts: Sequence[CachedPrompt], tokens: Sequence[Sequence[int]], *, last_only: bool
    ) -> tuple[Tensor, Captured, Fed]:
        """Several tokens for each of ``cached_prompts``, padded on the left. Logits (rows, tokens or 1, vocabulary), states
        (rows, tokens, hidden size), keys and values."""
        device = self._network.device
        width = max(map(len, tokens))
        padding = torch.tensor([width - len(row) for row in tokens], device=device)
        padded = torch.tensor([[0] * (width - len(row)) + list(row) for row in tokens], device=device)
        levels, before = self._layout(np.array([cached.number for cached in cached_prompts]))
        ends = torch.from_numpy(before).to(device)
        position = (ends[:, None] + torch.arange(width, device=device) - padding[:, None]).clamp(min=0)
        own = Fed(padding, width)
        logits, states = self._pass(Step(own, levels, position, int(before.max()) + width - 1), padded, last_only=last_only)
        return logits, states, own

    def _hold(self, prompts: Sequence[tuple[int, ...]]) -> PrefillSteps[list[CachedPrompt]]:
        wanted = self._network.wanted
        known = {prompt for prompt in prompts if (cached := self._cached.get(prompt)) and cached.covers(wanted)}
        for fresh, begun in self._in_turn([prompt for prompt in dict.fromkeys(prompts) if prompt not in known]):
            yield from self._read_whole(fresh)
            yield from self._read_rest(begun)
        if not all(self._cached[prompt].covers(wanted) for prompt in prompts):  # read again meanwhile, for other states
            return (yield from self._hold(prompts))
        return [self._cached[prompt] for prompt in prompts]

    def _in_turn(self, waiting: list[tuple[int, ...]]) -> Iterator[tuple[list[tuple[int, ...]], list[_Begun]]]:
        """Prompts of which nothing is held, and others with what is held of their beginnings, to be read before the next ones.

        Of prompts that begin alike, one is read first and the others find its beginning.
        """
        while waiting:
            beginnings: set[tuple[int, ...]] = set()
            fresh: list[tuple[int, ...]] = []
            begun: list[_Begun] = []
            later: list[tuple[int, ...]] = []
            for prompt in waiting:
                segments = self._beginning(prompt)
                start = prompt[: sum(segment.length for segment in segments) + self._shortest]
                if self._prefixes.budget and start in beginnings:
                    later.append(prompt)
                    continue
                beginnings.add(start)
                if segments:
                    begun.append((prompt, segments))
                else:
                    fresh.append(prompt)
            yield fresh, begun
            waiting = later

    def _beginning(self, prompt: tuple[int, ...]) -> tuple[Segment, ...]:
        """What is held of a prompt's beginning. Its last token is never among it: that one tells what comes next."""
        if len(prompt) <= self._shortest or self._prefixes.matched(prompt[:-1]) < self._shortest:
            return ()
        return self._prefixes.match(prompt[:-1])

    def _register(self, prompt: tuple[int, ...], trunk: tuple[Segment, ...] = ()) -> CachedPrompt:
        self._numbers += 1
        cached = self._cached[prompt] = self._by_number[self._numbers] = CachedPrompt(prompt, self._numbers, trunk)
        if cached.stem < len(prompt):
            width = pool_width(len(prompt) - cached.stem)
            self._pools.setdefault(width, SuffixPool(width)).add(cached)
        return cached

    def _read_whole(self, prompts: Sequence[tuple[int, ...]]) -> PrefillSteps[None]:
        """Prompts of which nothing is held, those of similar length together."""
        by_width: dict[int, list[tuple[int, ...]]] = {}
        for prompt in prompts:
            by_width.setdefault(pool_width(len(prompt)), []).append(prompt)
        for group in by_width.values():
            cache, _, logits, states = yield from self._network.prefill(group, windows=False)
            for row, prompt in enumerate(group):
                length = len(prompt)
                keys = [layer.keys[row, :, -length:] for layer in cache.layers]
                values = [layer.values[row, :, -length:] for layer in cache.layers]
                segment = Segment(keys, values, 0, length)
                # A view would keep the whole group's memory.
                own = segment if len(group) == 1 else segment.clone() if self._keeps(prompt) else None
                if own is not None and self._keeps(prompt):
                    self._prefixes.add(prompt, own)
                if own is not None and length >= self._trunk:
                    cached = self._register(prompt, (own,))
                else:
                    cached = self._register(prompt)
                    self._pools[pool_width(length)].append(cached, keys, values)
                cached.logits, cached.states = logits[row], {hook: state[row] for hook, state in states.items()}
            yield

    def _read_rest(self, begun: Sequence[_Begun]) -> PrefillSteps[None]:
        """Prompts whose beginnings are held, those with rests of similar length together."""
        by_width: dict[int, list[tuple[CachedPrompt, int]]] = {}
        for prompt, segments in begun:
            long = [number for number, segment in enumerate(segments, start=1) if segment.length >= self._trunk]
            trunk = segments[: long[-1] if long else 0]
            cached = self._register(prompt, trunk)
            assert cached.pool is not None
            for segment in segments[len(trunk) :]:
                cached.pool.append(cached, segment.keys, segment.values)
            self.reused_tokens += cached.read
            by_width.setdefault(pool_width(len(prompt) - cached.read), []).append((cached, cached.read))
        for group in by_width.values():
            # The last piece is the same length for all, but for those that have no more.
            most = max(min(_CHUNK, self._network.piece // len(group)), 1)
            pieces = -(-max(len(cached.tokens) - start for cached, start in group) // most)
            for piece in reversed(range(pieces)):
                members = [cached for cached, _ in group if len(cached.tokens) - cached.read > piece * most]
                fed = [cached.tokens[cached.read : len(cached.tokens) - piece * most] for cached in members]
                logits, states, own = self.feed(members, fed, last_only=True)
                self._network.read_tokens += sum(map(len, fed))
                for row, (cached, tokens) in enumerate(zip(members, fed, strict=True)):
                    assert cached.pool is not None
                    keys = [layer[row, :, -len(tokens) :] for layer in own.keys]
                    cached.pool.append(cached, keys, [layer[row, :, -len(tokens) :] for layer in own.values])
                    # Clones, so that the group's can be freed.
                    if not piece:
                        cached.logits = logits[row, -1].clone()
                        cached.states = {hook: state[row, -1].clone() for hook, state in states.items()}
                if piece:
                    yield
            for cached, start in group:
                self._prefixes.add(cached.tokens, self._tail(cached, start))
            yield

    def _tail(self, cached: CachedPrompt, start: int) -> Segment:
        """A copy of what a pool holds of a prompt from position ``start`` on."""
        pool = cached.pool
        assert pool is not None
        place = slice(start - cached.stem, cached.tail)
        keys = [layer[cached.slot, :, place].clone() for layer in pool.keys]
        return Segment(keys, [layer[cached.slot, :, place].clone() for layer in pool.values], start, cached.read - start)

    def _keeps(self, prompt: tuple[int, ...]) -> bool:
        return bool(self._prefixes.budget) and len(prompt) > self._shortest

    def _release(self) -> None:
        """Forget the prompts that no row reads, and none will."""
        for number in self._by_number.keys() - set(self._of_row.tolist()):
            if self._by_number[number].tokens in self._coming:
                continue
            cached = self._by_number.pop(number)
            # A prompt that had to be read again, for other states, has a newer entry.
            if self._cached.get(cached.tokens) is cached:
                del self._cached[cached.tokens]
            if cached.pool is not None:
                pool = cached.pool
                pool.drop(cached)
                if not pool.cached:
                    del self._pools[pool.width]
        self._levels = None

    def end_reading(self) -> None:
        """Forget what was read only to look at it."""
        self._release()
        self._prefixes.shrink()


class Reading:
    """``path.Reading``."""

    def __init__(self, path: Forked, cached_prompts: Sequence[CachedPrompt]) -> None:
        self._path = path
        self._helds = list(cached_prompts)
        self.logits = _logits(cached_prompts)

    def follow(self, index: Sequence[int], tokens: Sequence[Sequence[int]]) -> list[Tensor]:
        logits, _, _ = self._path.feed([self._helds[i] for i in index], tokens, last_only=False)
        return [row[-len(fed) :] for row, fed in zip(logits, tokens, strict=True)]

    def close(self) -> None:
        self._path.end_reading()


def _logits(cached_prompts: Sequence[CachedPrompt]) -> Tensor:
    rows = [cached.logits for cached in cached_prompts if cached.logits is not None]
    assert len(rows) == len(cached_prompts)
    return torch.stack(rows)


def _spread(
    read: Sequence[tuple[int, ...]], logits: Tensor, places: Mapping[tuple[int, ...], list[int]]
) -> Iterator[tuple[list[int], Tensor]]:
    """Logits (prompts, vocabulary) of prompts that were read, for all places at which these stand."""
    at = [(place, row) for row, prompt in enumerate(read) for place in places[prompt]]
    yield [place for place, _ in at], logits[torch.tensor([row for _, row in at], device=logits.device)]


def _common_trunks(begun: Sequence[_Begun]) -> Iterator[_Begun]:
    """Prompts with as much of their beginnings as is worth a product of its own: a short piece that few share is sooner read
    again."""
    users = Counter(id(segment) for _, segments in begun for segment in segments)
    for prompt, segments in begun:
        worth = [
            number
            for number, segment in enumerate(segments, start=1)
            if segment.length >= SHORTEST_PREFIX or 2 * users[id(segment)] >= len(begun)
        ]
        yield prompt, segments[: worth[-1] if worth else 0]


def _end(trunk: Sequence[Segment]) -> int:
    return trunk[-1].start + trunk[-1].length if trunk else 0


def check(network: Network) -> None:
    """Raise Unsupported where the configuration tells that a model's attention is not covered."""
    types = set(getattr(network.config, "layer_types", None) or ["full_attention"])
    if not types <= {"full_attention", "sliding_attention"} or getattr(network.config, "attention_chunk_size", None):
        raise Unsupported(f"attention of the types {', '.join(sorted(types))}")


def switch(model: Any, implementation: str) -> None:
    """Have a model compute its attention otherwise from now on."""
    if implementation == model.config._attn_implementation:
        return
    if implementation == IMPLEMENTATION:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask

        AttentionInterface.register(IMPLEMENTATION, attend)
        AttentionMaskInterface.register(IMPLEMENTATION, sdpa_mask)
    if model._can_set_attn_implementation():
        model.set_attn_implementation(implementation)
    elif implementation != IMPLEMENTATION:
        model.config._attn_implementation = implementation  # such classes (Falcon) look it up at each pass
    else:
        raise Unsupported("attention of its own")
