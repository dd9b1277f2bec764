"""Scoring by next-token probabilities: what to ask vLLM for, and how its replies make up the scores.

vLLM gives the log-probabilities of named tokens after a prompt. Each prefix of a continuation is one such question, asked once
for all continuations that share it; the prompt itself is read once, then from the cache. (It also gives those of whole prompts
in one pass, but one that reads nothing from the cache.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Prefix = tuple[int, ...]

# vLLM names at most 128 tokens a request.
NAMED = 128


def questions(continuations: Sequence[Sequence[int]]) -> list[tuple[Prefix, list[int]]]:
    """(tokens after the prompt, tokens whose log-probability comes next), at most ``NAMED`` tokens each."""
    wanted: dict[Prefix, dict[int, None]] = {}
    for tokens in continuations:
        for at, token in enumerate(tokens):
            wanted.setdefault(tuple(tokens[:at]), {})[token] = None
    return [
        (prefix, list(named)[start : start + NAMED])
        for prefix, named in wanted.items()
        for start in range(0, len(named), NAMED)
    ]


def assemble(continuations: Sequence[Sequence[int]], replies: Mapping[tuple[Prefix, int], float]) -> list[tuple[float, ...]]:
    """The log-probabilities of each continuation's tokens. ``replies`` maps (prefix, token) to the token's after the prefix."""
    return [tuple(replies[tuple(tokens[:at]), token] for at, token in enumerate(tokens)) for tokens in continuations]
