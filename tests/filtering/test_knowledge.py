from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.errors import InvalidInput
from gnothi.filtering.knowledge import (
    FILE,
    QUESTIONS,
    Experience,
    KnowledgeReference,
    KnowledgeSource,
    Neighbours,
    open_knowledge,
    write_knowledge,
)
from tests.filtering.encoder import tiny_encoder
from tests.messages import refused

STORED = [
    Experience("Who wrote the novel Emma?", True),
    Experience("Who wrote the novel Ulm?", True),
    Experience("Where was the baker Ilse Marn born?", False),
    Experience("Where was the smith Odo Varr born?", False),
    Experience("Where was the painter Ada Bram born?", True),
]


async def test_neighbours_are_the_most_alike() -> None:
    reference = KnowledgeReference(STORED)
    assert isinstance(reference, KnowledgeSource)
    assert await reference.neighbours("Who wrote the novel Vesk?", 2) == Neighbours(2, 0, (3, 2, 0))
    assert await reference.neighbours("Where was the tailor Bo Lund born?", 3) == Neighbours(1, 2, (3, 2, 0))
    assert await reference.neighbours("Anything?", 99) == Neighbours(3, 2, (3, 2, 0))


async def test_a_folder_is_read_back(tmp_path: Path) -> None:
    write_knowledge(tmp_path / "known", STORED)
    reference = open_knowledge(tmp_path / "known")
    assert await reference.neighbours("Who wrote the novel Vesk?", 2) == Neighbours(2, 0, (3, 2, 0))
    assert reference.name == str(tmp_path / "known")
    await reference.aclose()


async def test_an_encoder_may_search_it(tmp_path: Path) -> None:
    stored = [Experience("who planned the ferry", False), Experience("when was the tram at Dunmere", True)]
    write_knowledge(tmp_path / "known", stored, tiny_encoder(tmp_path / "encoder"))
    reference = open_knowledge(tmp_path / "known")
    assert await reference.neighbours("who planned the tram", 1) == Neighbours(0, 1, (1, 1, 0))
    await reference.aclose()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (FILE, None),
        (QUESTIONS, None),
        (FILE, "{"),
        (FILE, '{"format": 9, "encoder": "lexical"}'),
        (QUESTIONS, '{"text": "Who?"}'),
        (QUESTIONS, ""),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, file: str, text: str | None) -> None:
    write_knowledge(tmp_path, STORED)
    (tmp_path / file).unlink()
    if text is not None:
        (tmp_path / file).write_text(text)
    with refused(InvalidInput):
        open_knowledge(tmp_path)
