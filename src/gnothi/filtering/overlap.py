"""A re-ranker that needs no model: texts that share rare words with the query come first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from gnothi.signals.replies import normalized


class SharedWords:
    """The score of a text: the weight of its different words that the query holds, over the root of their number.

    A word weighs the more the fewer of the texts hold it, log(1 + n / count), so that what all candidates say counts for little.
    """

    name = "shared words"

    async def score(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """One number for each text, 0 where it shares nothing with the query."""
        wanted = set(normalized(query).split())
        words = [set(normalized(text).split()) for text in texts]
        holding = Counter(word for one in words for word in one)
        weights = {word: math.log1p(len(texts) / count) for word, count in holding.items()}
        return tuple(sum(weights[word] for word in sorted(one & wanted)) / math.sqrt(max(len(one), 1)) for one in words)

    async def aclose(self) -> None:
        """Nothing to release."""
