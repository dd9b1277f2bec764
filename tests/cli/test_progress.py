"""Progress on a terminal and elsewhere."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from gnothi.cli.progress import RunProgress
from gnothi.report.terminal import console as terminal


def test_elsewhere_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with RunProgress(100, 20, "lab") as bar:
        for question in range(80):
            now += 1.0
            bar.advance(failed=question == 3)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "lab: 50 of 100, 1 failed, 1.0/s, about 50 s left",
        "lab: 80 of 100, 1 failed, 1.0/s, about 20 s left",
    ]


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(terminal, "console", lambda stderr=False: console)  # noqa: ARG005
    with RunProgress(10, 4, "lab") as bar:
        for _ in range(6):
            bar.advance(failed=True)
    assert "10/10" in screen.getvalue()
    assert "6 failed" in screen.getvalue()
