"""As a program, a build of an index that stops after each step, to be killed there: SOURCE TARGET [PASSAGES OF A
BATCH]. Vectors, where the target takes any, are those of words."""

from __future__ import annotations

import sys

from gnothi.retrieval import build as module
from gnothi.retrieval.dense.encoders import Encoding
from gnothi.retrieval.sources import SourceReader
from tests.retrieval.dense import words
from tests.stopping import stops_after

COMMIT_BYTES = 60_000
"""Small commits, so that a kill can fall before, between, inside and after them."""


def main(source: str, out: str, batch: str = str(module.BATCH)) -> None:
    def passages(_: Encoding) -> object:
        return words.passages

    Encoding.passages, Encoding.fingerprint = passages, lambda _: "words"  # type: ignore[method-assign,assignment]
    module.BATCH, module._COMMIT_BYTES = int(batch), COMMIT_BYTES
    # After each batch of passages, each commit of them, each file whose passages leave, and each note of how far reading is.
    stops_after(module._Build, "_put", "_commit", "_drop")
    stops_after(SourceReader, "_save")
    module.build([source], out)


if __name__ == "__main__":
    main(*sys.argv[1:])
