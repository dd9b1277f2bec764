"""As a program, the vectors of an index made, stopping after each step, to be killed there: INDEX."""

from __future__ import annotations

import sys
from functools import partialmethod

from usearch.index import Index

from gnothi.retrieval.dense import embed, encoders, index
from gnothi.retrieval.dense.store import Store
from tests.retrieval.dense import words
from tests.stopping import stops_after


def main(folder: str) -> None:
    # Small batches and a graph saved after each step, so that a kill can fall before, between, inside and after them.
    embed.BATCH, index.EXACT, index._STEP, index._SECONDS_BETWEEN_SAVES = 64, 500, 100, 0.0
    # Threads that insert side by side lose some neighbours, the more the more cores there are.
    Index.add = partialmethod(Index.add, threads=1)  # type: ignore[method-assign,assignment]
    stops_after(Store, "add", "compact")
    stops_after(index, "_save")
    embed.embed(folder, encoders.Encoding("words"), encode=words.passages)


if __name__ == "__main__":
    main(sys.argv[1])
