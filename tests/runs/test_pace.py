"""How fast a run went comes back as it was noted; what is none is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.errors import InvalidInput
from gnothi.runs.pace import FILE, Pace, note, paces
from tests.messages import refused


def test_paces_come_back(tmp_path: Path) -> None:
    noted = [Pace(1.5, 20, 300.0, 16), Pace(2.0, 5, 40.0, 16, 2)]
    assert paces(tmp_path) == []
    for one in noted:
        note(tmp_path, one)
    assert paces(tmp_path) == noted


@pytest.mark.parametrize(
    "line",
    [
        '{"seconds": 1}',
        "[]",
        '{"seconds": -1, "answers": 1, "tokens": 1, "under_way": 1, "processes": 1}',
        '{"seconds": "x", "answers": 1, "tokens": 1, "under_way": 1, "processes": 1}',
    ],
)
def test_what_is_none_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(line + "\n", "utf-8")
    with refused(InvalidInput):
        paces(tmp_path)
