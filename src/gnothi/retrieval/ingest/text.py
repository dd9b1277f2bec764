"""Plain text. The title is the file's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gnothi.retrieval.ingest.base import Block
from gnothi.retrieval.ingest.encoding import chunks, detect


def blocks(path: Path, title: str = "") -> Iterator[Block]:
    """Text in blocks of at most 64 KiB, cut anywhere. ``title``: instead of the file's name."""
    title = title or path.stem
    encoding = detect(path)
    if encoding.notice:
        yield Block(title, "", notice=encoding.notice)
    for text, read in chunks(path, encoding.name):
        yield Block(title, text, read)


# Source code and other text whose lines matter: whole lines, cut where a definition or a paragraph begins. The title is the
# file's name.

SOURCES = (
    ".py .pyi .r .jl .js .mjs .cjs .jsx .ts .tsx .vue .java .kt .kts .scala .groovy .clj .c .h .cc .cpp .cxx .hh .hpp .cs .fs"
    " .vb .go .rs .swift .zig .d .rb .php .pl .pm .lua .hs .ml .mli .ex .exs .erl .lisp .el .scm .sh .bash .zsh .fish .ps1 .bat"
    " .sql .css .scss .less .proto .graphql .tf .cmake .f90 .pas .asm .yaml .yml .toml .ini .cfg .conf .properties .tex .log"
)


def source_blocks(path: Path) -> Iterator[Block]:
    line = 1
    for block in blocks(path, path.name):
        for part in block.text.splitlines(keepends=True):
            yield Block(path.name, part, block.read, metadata={"line": line}, kind="code")
            line += part.endswith("\n")
        if block.notice:
            yield Block(path.name, "", notice=block.notice)
