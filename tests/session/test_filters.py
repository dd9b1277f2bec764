"""A filter holds for whatever is asked: by name, as a setting, for one question; a misspelt key is told before the first."""

from __future__ import annotations

import pytest

import gnothi
from gnothi.errors import InvalidSetting
from gnothi.events import UnknownKeys
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage
from tests.messages import refused


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("filters")
    (folder / "new.md").write_text("---\ndate: 2025-02-03\n---\nDana Brisk kept the lighthouse.")
    (folder / "old.md").write_text("---\ndate: 1999-12-31\n---\nDana Brisk kept the lighthouse.")
    gnothi.build_index(folder, folder / "index")
    return str(folder / "index")


def test_for_all_questions_and_for_one(index: str) -> None:
    with gnothi.open("rag", model="lab", index=index, filters=[("date", ">=", "2025-01")]) as rag:
        found = [one.passage.metadata["date"] for one in rag.search("lighthouse", 5)]
        assert found == ["2025-02-03"]
        assert rag.search("lighthouse", 5, filters="source=*old.md") == ()
        asked = rag.ask("Who kept the lighthouse?", filters="date<2000")
        assert [event.passages for event in asked.searches] == [()] * len(asked.searches)
        assert {one.metadata["date"] for one in rag.ask("Who kept the lighthouse?").evidence} <= {"2025-02-03"}
        unknown = [one for one in rag.ask("Who kept the lighthouse?", filters="lang=de").events if isinstance(one, UnknownKeys)]
        assert unknown
        assert unknown[0].lacking == ("lang",)
        assert unknown[0].known == ("date", "source")


def test_what_cannot_be_is_told_before_the_first_question(index: str) -> None:
    with refused(InvalidSetting):
        gnothi.open("rag", model="lab", index=index, filters="lang=de")
    with refused(InvalidSetting):
        gnothi.open("rag", model="lab", index=ScriptedRetriever([Passage("a", "text")]), filters="lang=de")
    with refused(InvalidSetting):
        gnothi.open("rag", model="lab", index=index, filters="date>soon")
