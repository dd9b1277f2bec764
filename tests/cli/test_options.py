"""Numbers on the command line: what is none is refused wherever one is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import Run
from tests.messages import complained


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e400", "cheap"])
@pytest.mark.parametrize(
    "command",
    [
        "calibrate --replay FILE --search-cost",
        "calibrate FILE --out OUT --search-cost",
        "calibrate FILE --out OUT --target-error",
        "calibrate FILE --out OUT --epsilon",
        "ask Why? --max-cost",
    ],
    ids=" ".join,
)
def test_a_number_has_to_be_one(gnothi: Run, tmp_path: Path, command: str, value: str) -> None:
    (tmp_path / "FILE").write_text("{}", encoding="utf-8")
    arguments = [str(tmp_path / word) if word.isupper() else word for word in command.split()]
    complained(gnothi(*arguments, value))
    assert not (tmp_path / "OUT").exists()
