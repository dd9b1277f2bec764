"""What the parts of ``compose`` are made of: the numbers of their methods, and the settings that each one reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Literal

from gnothi.errors import InvalidSetting

Query = Literal["question", "keywords", "draft", "masked", "questions", "claims", "reflection"]
Filter = Literal["none", "uncertainty", "utility", "rerank", "relevance", "pmi", "log_odds", "strinc", "lexical", "cxmi"]

CERTAINTY: Mapping[Query, float] = {"draft": 0.9, "masked": 0.4, "questions": 0.4, "claims": 0.9}
"""The queries made of an answer from memory, and from which probability on their methods count a word as certain."""
ASKED_FOR: Collection[Query] = ("masked", "questions")
"""The queries that say nothing without log-probabilities."""
JUDGED: Collection[Filter] = ("utility", "relevance", "pmi", "log_odds")
SCORED: Collection[Filter] = ("relevance", "pmi", "log_odds", "cxmi")
LIMITS: Mapping[Filter, tuple[float, int | None]] = {
    "rerank": (0.0, 3),
    "relevance": (0.0, 5),
    "pmi": (0.0, None),
    "log_odds": (0.0, None),
    "strinc": (0.0, 1),
    "lexical": (0.0, 1),
    "cxmi": (0.0, 1),
}
"""The threshold of a filter (of sentences) and the number kept, as their methods have them; other filters have neither."""
SENTENCES: Collection[Filter] = tuple(name for name in LIMITS if name != "rerank")

_LEARNT: Mapping[str, tuple[str, str]] = {
    "neighbours": ("knowledge", "train knowledge-reference"),
    "complexity": ("classifier", "train complexity"),
    "learned": ("learned", "calibrate --learn"),
}
"""The gates and answers that go by training questions: the resource that holds them, and the training that makes it."""
_RETRIEVING = ("query", "k", "filter", "answer")
_USES: Mapping[str, Mapping[str, Collection[str]]] = {
    "knowledge": {"gate": ("neighbours",)},
    "neighbours": {"gate": ("neighbours",)},
    "classifier": {"gate": ("complexity",)},
    "learned": {"gate": ("learned",), "answer": ("learned",)},
    "certainty": {"query": tuple(CERTAINTY)},
    "judge": {"filter": JUDGED},
    "reference": {"filter": ("utility",)},
    "reranker": {"filter": ("rerank",)},
    "filter_threshold": {"filter": SENTENCES},
    "keep": {"filter": tuple(LIMITS)},
    "language": {"filter": SENTENCES},
}
"""Which choices of which parts read a setting."""


def refuse_unused(method: Any) -> None:
    """Raise InvalidSetting for the first setting of ``compose`` that differs from its default and can have no effect."""
    changed = {item.name: getattr(method, item.name) for item in fields(method) if getattr(method, item.name) != item.default}
    if method.gate == "never":
        for key in _RETRIEVING:
            if key in changed:
                raise InvalidSetting(
                    f"setting {key!r}: got {changed[key]}, but gate=never retrieves nothing, so that it would have no effect; "
                    f"expected another gate, or no {key}."
                )
    if method.gate in ("never", "always") and "gate_threshold" in changed:
        raise InvalidSetting(
            f"setting 'gate_threshold': got {changed['gate_threshold']}, but gate={method.gate} measures nothing."
        )
    for key, parts in _USES.items():
        if key in changed and not any(getattr(method, part) in users for part, users in parts.items()):
            got = changed[key] if isinstance(changed[key], str | int | float) else "one"
            chosen = " with ".join(f"{part}={getattr(method, part)}" for part in parts)
            expected = " or ".join(f"{part}={' or '.join(users)}" for part, users in parts.items())
            raise InvalidSetting(f"setting {key!r}: got {got}, but {chosen} has no use for it; expected {expected}.")


def require_learnt(method: Any) -> None:
    """Raise InvalidSetting for a part of ``compose`` that goes by training questions and has none."""
    for part in ("gate", "answer"):
        chosen = getattr(method, part)
        source, command = _LEARNT.get(chosen, (part, ""))
        if getattr(method, source) is None:
            raise InvalidSetting(
                f"setting {part!r}: got {chosen}, which goes by training questions, but {source} is not given. Give it with "
                f"<--set {source}=FOLDER>, made by `gnothi {command}`."
            )
