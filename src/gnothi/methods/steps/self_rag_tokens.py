"""Self-RAG's reflection tokens, as its published checkpoints have them, and what their probabilities say (section 3.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gnothi.types import Passage

RETRIEVAL, NO_RETRIEVAL, CONTINUE = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"
RELEVANT, IRRELEVANT = "[Relevant]", "[Irrelevant]"
SUPPORTS = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
UTILITIES = tuple(f"[Utility:{grade}]" for grade in range(1, 6))
OPENING, CLOSING = "<paragraph>", "</paragraph>"
TOKENS = (RETRIEVAL, NO_RETRIEVAL, CONTINUE, RELEVANT, IRRELEVANT, *SUPPORTS, *UTILITIES, OPENING, CLOSING)

# What ends a segment. Where a backend shows no special tokens, only the end of the reply does.
STOPS = (RETRIEVAL, NO_RETRIEVAL, CONTINUE, *SUPPORTS, "[Utility:", OPENING)

_ANY = re.compile("|".join(map(re.escape, TOKENS)))
_UTILITY_WEIGHTS = (-1.0, -0.5, 0.0, 0.5, 1.0)


def paragraph(passage: Passage) -> str:
    """A passage as the model is shown it."""
    title = f"{passage.title}\n" if passage.title else ""
    return f"{RETRIEVAL}{OPENING}{title}{passage.text}{CLOSING}"


def without_tokens(text: str) -> str:
    """What a reader sees of a reply."""
    return " ".join(_ANY.sub(" ", text).split())


def share(probabilities: Sequence[float]) -> float:
    """The first one's share of all; 0 where all are impossible."""
    total = sum(probabilities)
    return probabilities[0] / total if total else 0.0


def support(probabilities: Sequence[float]) -> float:
    """Of full, partial and no support: full counts wholly, partial half. In [0, 1]."""
    full, partial, _ = probabilities
    total = sum(probabilities)
    return (full + 0.5 * partial) / total if total else 0.0


def utility(probabilities: Sequence[float]) -> float:
    """Of grades 1 to 5: their mean, on a scale from -1 to 1."""
    total = sum(probabilities)
    weighed = sum(weight * probability for weight, probability in zip(_UTILITY_WEIGHTS, probabilities, strict=True))
    return weighed / total if total else 0.0
