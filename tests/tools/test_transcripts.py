from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.testing.model import Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Passage, Question
from tools import transcripts

PAGE = (
    "# Real transcripts\n\nOf a model.\n\n## cot\n\nNot touched.\n\n"
    "## rag\n\nWhat was mended.\n\n**Old?** (x)\n\n```text\nold\n```\n"
)


async def test_sections_are_filled_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gnothi

    questions = [Question(f"q{number}", f"Where was Mira {number} born?", ("Kestrel",)) for number in range(12)]
    resources = {
        "model": Scripted(lambda _: "Kestrel " + "and so on " * 40),
        "index": ScriptedRetriever([Passage("p", "Text.")]),
    }
    await gnothi.aevaluate(questions, methods=["rag"], **resources, out=tmp_path / "run")
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    monkeypatch.setattr("sys.argv", ["transcripts", str(tmp_path / "run"), "--page", str(page)])
    for _ in range(2):  # again, it is the same
        assert transcripts.main() == 0
        text = page.read_text()
        assert text.startswith(PAGE.partition("**")[0])
        assert "Old?" not in text
        assert text.count("**Where was Mira") == transcripts.QUESTIONS
        assert "search    Where was Mira 0 born?" in text
        assert "answer    Kestrel and so on" in text
        assert max(map(len, text.splitlines())) <= transcripts.WIDTH + 20
