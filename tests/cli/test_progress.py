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
        "lab: 80 of 100, 1 failed, 1.0/s, about 20 s left",
    ]


def test_a_line_every_minute_also_before_the_first_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    calls = {"rag": 0, "seakr": 0}
    with RunProgress(100, 0, "popqa") as bar:
        for second in range(1, 181):
            now += 1.0
            calls["rag"] = second // 30
            bar.pulse(100 * second, calls if second >= 30 else {}, None)
            if second == 150:
                bar.advance(failed=False)
    assert capsys.readouterr().err.splitlines() == [
        "popqa: 0 of 100 after 60 s; 6,000 prompt tokens read, calls done: rag 2, seakr 0",
        "popqa: 0 of 100 after 2 min; 12,000 prompt tokens read, calls done: rag 4, seakr 0",
        "popqa: 1 of 100, 0.3/min, about 4 h 57 min left; 18,000 prompt tokens read, calls done: rag 6, seakr 0",
    ]


def test_time_left_is_what_the_pulse_knows_of_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with RunProgress(100, 0, "popqa") as bar:
        now = 240.0
        bar.pulse(10, {"seakr": 300}, None)
        for _ in range(4):
            bar.advance(failed=False)
        now = 300.0
        bar.pulse(10, {"seakr": 301}, 1680.0)
    assert "popqa: 4 of 100, 0.8/min, about 28 min left;" in capsys.readouterr().err


def test_of_many_methods_the_rest_is_summed_up(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with RunProgress(100, 0, "lab") as bar:
        now += 60.0
        bar.pulse(10, dict.fromkeys("abcdefg", 1_000), None)
    assert "calls done: a 1,000, b 1,000, c 1,000, d 1,000, 3 more methods 3,000" in capsys.readouterr().err


def test_a_bar_tells_what_was_read_before_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(terminal, "console", lambda stderr=False: console)  # noqa: ARG005
    with RunProgress(10, 0, "lab") as bar:
        bar.pulse(1300, {"rag": 1}, None)
        assert "left" not in screen.getvalue()
        bar.advance(failed=False)
        bar.pulse(1300, {"rag": 1}, 1680.0)
    assert "about 28 min left" in screen.getvalue()
    assert "1,300 prompt tokens read, calls done: rag 1" in screen.getvalue()


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(terminal, "console", lambda stderr=False: console)  # noqa: ARG005
    with RunProgress(10, 4, "lab") as bar:
        for _ in range(6):
            bar.advance(failed=True)
    assert "10/10" in screen.getvalue()
    assert "6 failed" in screen.getvalue()
