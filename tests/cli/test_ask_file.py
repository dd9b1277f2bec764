"""``gnothi ask --file``: questions without known answers, kept in a folder as they are answered, one line each at the end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gnothi.models.wrappers import Seeded, Traced
from gnothi.runs.folder import read_rows
from gnothi.session import sources
from gnothi.testing.model import Reply, Scripted
from tests.command_line import Run
from tests.messages import complained
from tests.runs.fake_ray import FakeRay

ASKED = ("Who directed The Amber Harbour?", "Who wrote The Hollow Letter?")


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    file = tmp_path / "questions.txt"
    file.write_text(f"\ufeff{ASKED[0]}\n\n  {ASKED[1]}\n", "utf-8")
    return file


@pytest.mark.usefixtures("scripted")
def test_a_line_a_question_and_an_answer(gnothi: Run, lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, err = gnothi("ask", "--file", str(lines), "--method", "rag", "--out", str(out))
    assert code == 0, err
    rows = {row.question_id: row for row in read_rows(out)}
    assert [(id, row.question) for id, row in sorted(rows.items())] == [("1", ASKED[0]), ("3", ASKED[1])]
    assert said.splitlines() == [f"{id}\t{rows[id].answer}" for id in ("1", "3")]
    assert all(row.answer and not row.gold and not row.metrics for row in rows.values())


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_a_model_says_does_not_steer_the_terminal(
    gnothi: Run, lines: Path, tmp_path: Path, form: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Traced(Seeded(Scripted(lambda _: Reply("Rome \x1b[31m\x9b2J \u202edesrever"), name="lab")))
    monkeypatch.setattr(sources, "open_model", lambda *_, **__: model)
    code, said, err = gnothi("ask", "--file", str(lines), "--method", "direct", *form, "--out", str(tmp_path / "run"))
    assert code == 0, err
    assert "desrever" in said
    assert not {letter for letter in said + err if not letter.isprintable()} - {"\n", "\t"}


@pytest.mark.usefixtures("scripted")
def test_it_goes_on_and_prints_all(gnothi: Run, lines: Path, tmp_path: Path) -> None:
    arguments = ("ask", "--file", str(lines), "--method", "rag", "--json", "--out", str(tmp_path / "run"))
    _, before, _ = gnothi(*arguments)
    rows = tmp_path / "run" / "rows.jsonl"
    kept = rows.read_text().splitlines()
    rows.write_text(kept[0] + "\n")
    code, after, _ = gnothi(*arguments)
    assert code == 0
    assert len(rows.read_text().splitlines()) == 2
    one, other = ([json.loads(line) for line in said.splitlines()] for said in (before, after))
    assert [row["id"] for row in other] == ["1", "3"]
    assert [row["answer"] for row in one] == [row["answer"] for row in other]
    assert {"question", "evidence", "decisions", "cost", "uncertainty"} < other[0].keys()
    assert other[0]["cost"]["retrievals"] == 1


@pytest.mark.usefixtures("scripted")
def test_records_may_lack_answers(gnothi: Run, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"id": "a", "question": "Who?"}\n{"id": "b", "question": "Where?", "answers": ["Rome"]}\n')
    code, said, err = gnothi("ask", "--file", str(file), "--method", "direct", "--out", str(tmp_path / "run"))
    assert code == 0, err
    assert [line.partition("\t")[0] for line in said.splitlines()] == ["a", "b"]
    complained(gnothi("eval", str(file), "--method", "direct", "--out", str(tmp_path / "eval")))


@pytest.mark.usefixtures("scripted")
def test_on_ray(gnothi: Run, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    given = ("ask", "--file", str(lines), "--method", "rag", "--out")
    _, here, _ = gnothi(*given, str(tmp_path / "here"))
    code, there, err = gnothi(*given, str(tmp_path / "ray"), "--on", "ray", "--workers", "2")
    assert (code, there, len(ray.actors)) == (0, here, 2), err


def test_a_question_that_fails(gnothi: Run, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gnothi.methods.direct import Direct

    async def fails(*_: object) -> None:
        raise ValueError("no idea")

    monkeypatch.setattr(Direct, "__call__", fails)
    given = ("ask", "--file", str(lines), "--method", "direct", "--out", str(tmp_path / "run"))
    code, said, err = gnothi(*given)
    assert (code, said.splitlines()) == (1, ["1\t", "3\t"])
    assert "warning: question 3 failed: no idea" in err
    code, said, _ = gnothi(*given, "--json")
    assert (code, json.loads(said.splitlines()[0])["error"]["message"]) == (1, "no idea")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Who? --out run",
        "Who? --on ray",
        "Who? --file FILE --out run",
        "--file FILE",
        "--file FILE --out run --choice a",
        "--file FILE --out run --trace",
        "--file nowhere.txt --out run",
        "--file EMPTY --out run",
        "--file LATIN --out run",
    ],
)
def test_mistakes(gnothi: Run, lines: Path, tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").write_text("\n \n")
    (tmp_path / "latin").write_bytes(b"Who?\nO\xf9?\n")
    named = {
        "FILE": str(lines),
        "EMPTY": str(tmp_path / "empty"),
        "LATIN": str(tmp_path / "latin"),
        "run": str(tmp_path / "run"),
    }
    complained(gnothi("ask", *(named.get(one, one) for one in given.split())))
    assert not (tmp_path / "run").exists()
