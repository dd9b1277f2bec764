from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable
from gnothi.protocols import Retriever
from gnothi.retrieval.registry import index_fingerprint, open_index
from gnothi.testing.conformance import RetrieverConformance
from gnothi.testing.conformance.retriever import CORPUS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for passage in CORPUS:
        title = f"# {passage.title}\n" if passage.title else ""
        (tmp_path / f"{passage.id}.txt").write_text(title + passage.text, "utf-8")
    return tmp_path


class TestNotes(RetrieverConformance):
    @pytest.fixture
    def retriever(self, folder: Path) -> Retriever:
        return open_index(f"notes:{folder}")


def test_it_is_opened_by_its_scheme_and_a_changed_note_shows(folder: Path) -> None:
    spec = f"notes:{folder}"
    assert open_index(spec).name == spec
    before = index_fingerprint(spec)
    (folder / "p1.txt").write_text("something else")
    assert index_fingerprint(spec) != before


def test_a_folder_without_notes(tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailable, match="no notes"):
        open_index(f"notes:{tmp_path}")
