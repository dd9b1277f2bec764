"""`gnothi report --forecast`: what many questions would take, from a run that was asked here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import Run
from tests.messages import complained


@pytest.fixture
def sample(gnothi: Run, scripted: object, tmp_path: Path) -> str:  # noqa: ARG001
    assert gnothi("eval", "lab", "--method", "direct,rag", "--limit", "6", "--out", str(tmp_path / "run"))[0] == 0
    return str(tmp_path / "run")


def test_a_sample_says_what_a_million_would_take(gnothi: Run, sample: str) -> None:
    code, out, err = gnothi("report", sample, "--forecast", "1e6", "--devices", "2", "--prices", "hour=3")
    assert code == 0
    assert "1,000,000 questions on 2 devices" in out
    assert all(word in out for word in ("rag (6 questions seen)", "tokens read", "time", "money"))
    assert "few answers were timed" in err
    assert max(map(len, out.splitlines()[1:])) <= 80


def test_as_json(gnothi: Run, sample: str) -> None:
    found = json.loads(gnothi("report", sample, "--forecast", "1_000", "--json")[1])
    assert found["questions"] == 1000
    assert [one["method"] for one in found["methods"]] == ["direct", "rag"]
    assert found["methods"][1]["searches"]["value"] == 1000


def test_a_resumed_run_is_timed_twice(gnothi: Run, sample: str) -> None:
    timed = Path(sample) / "pace.jsonl"
    assert gnothi("eval", "lab", "--method", "direct,rag", "--limit", "6", "--out", sample)[0] == 0
    assert len(timed.read_text("utf-8").splitlines()) == 1, "nothing was asked"
    rows = Path(sample) / "rows.jsonl"
    rows.write_text("".join(rows.read_text("utf-8").splitlines(keepends=True)[:-2]), "utf-8")
    assert gnothi("eval", "lab", "--method", "direct,rag", "--limit", "6", "--out", sample)[0] == 0
    assert [json.loads(line)["answers"] for line in timed.read_text("utf-8").splitlines()] == [12, 2]


@pytest.mark.parametrize("number", ["0", "1.5", "many", "1e30", "nan", "-3"])
def test_what_is_no_number_of_questions_is_refused(gnothi: Run, sample: str, number: str) -> None:
    complained(gnothi("report", sample, "--forecast", number))


def test_a_folder_that_is_no_run_is_refused(gnothi: Run, tmp_path: Path) -> None:
    complained(gnothi("report", str(tmp_path), "--forecast", "10"))


@pytest.mark.parametrize(
    "given", ["--forecast 10 --html page.html", "--devices 2", "--prices hour=3", "--forecast 10 --prices hours=3"]
)
def test_what_does_not_go_together_is_refused(gnothi: Run, sample: str, given: str) -> None:
    complained(gnothi("report", sample, *given.split()))


def test_one_run_is_forecast_from(gnothi: Run, sample: str) -> None:
    complained(gnothi("report", sample, sample, "--forecast", "10"))
