"""Source code and other text whose lines matter: whole lines, cut where a definition or a paragraph begins. The title is the
file's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gnothi.retrieval.ingest import text
from gnothi.retrieval.ingest.base import Block, Checkpoint, Step, document_steps

ENDS = (
    ".py .pyi .r .jl .js .mjs .cjs .jsx .ts .tsx .vue .java .kt .kts .scala .groovy .clj .c .h .cc .cpp .cxx .hh .hpp .cs .fs"
    " .vb .go .rs .swift .zig .d .rb .php .pl .pm .lua .hs .ml .mli .ex .exs .erl .lisp .el .scm .sh .bash .zsh .fish .ps1 .bat"
    " .sql .css .scss .less .proto .graphql .tf .cmake .f90 .pas .asm .yaml .yml .toml .ini .cfg .conf .properties .tex .log"
).split()


def read(path: Path, key: str, words: int, start: Checkpoint) -> Iterator[Step]:  # noqa: ARG001 - always from the beginning
    yield from document_steps(_blocks(path), key, words)


def _blocks(path: Path) -> Iterator[Block]:
    line = 1
    for block in text.blocks(path, path.name):
        for part in block.text.splitlines(keepends=True):
            yield Block(path.name, part, block.read, metadata={"line": line}, kind="code")
            line += part.endswith("\n")
        if block.notice:
            yield Block(path.name, "", notice=block.notice)
