"""How the campaign of faults stops whole programs, and what it makes of their ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

from benchmarks import _faults_own_time as own_time
from benchmarks import _faults_programs as programs
from benchmarks import _faults_ray as on_ray
from benchmarks._faults_killed import rows_of
from benchmarks._faults_nursery import Nursery, Start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
BUSY = "import time\nwhile time.process_time() < 0.4: pass\ntime.sleep(600)"


@contextmanager
def session(code: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_what_a_program_and_its_children_spend_is_seen_from_outside() -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    with session(BUSY) as alone, session(child) as parent:
        for one in (alone, parent):
            assert own_time.wait(lambda one=one: own_time.spent(one.pid) >= 0.3, one.pid, 60) is not None  # type: ignore[misc]
        (of_it,) = set(own_time.family(parent.pid)) - {parent.pid}
        subprocess.run(["kill", str(of_it)], check=True)


def test_waiting_ends_with_the_programs_own_seconds() -> None:
    with session("import time; time.sleep(600)") as process:
        assert own_time.wait(lambda: False, process.pid, 0.3) is None


def test_a_process_that_outlives_its_session_is_told() -> None:
    child = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], stdout=subprocess.DEVNULL)"
    code = f"import subprocess, sys; print({child}.pid)"
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE, text=True)
    said, _ = process.communicate()
    assert own_time.survivors(process.pid, 0.1) == ["leaves 1 processes"]
    subprocess.run(["kill", said.strip()], check=True)
    assert own_time.survivors(process.pid, 120) == []


@pytest.mark.parametrize(
    ("code", "seconds", "words", "told"),
    [
        (143, 1.0, "interrupted. It goes on with the same command again.", []),
        (0, 1.0, "done", []),
        (-15, 1.0, "done", []),  # its results are out: Python was about to end
        (-15, 1.0, "opening model lab ...", ["ends in exit code -15"]),
        (143, 1.0, "interrupted.", ["not said how to go on"]),
        (143, 5.5, "the same command", ["does not end soon"]),
        (1, 1.0, "Traceback (most recent call last):", ["ends in exit code 1", "traceback"]),
    ],
)
def test_how_a_program_ended_that_was_asked_to(code: int, seconds: float, words: str, told: list[str]) -> None:
    assert programs.judged(signal.SIGTERM, code, seconds, words) == told


def test_moments_are_drawn_from_the_whole_program_at_first_and_sooner_later() -> None:
    whole = programs.Whole(None, 100, 10.0)
    first, later = ([programs._draw_stop(Random(n), whole, False, one) for n in range(300)] for one in (True, False))
    assert {stop.how for stop in first} == {signal.SIGKILL, signal.SIGTERM, signal.SIGINT}
    for drawn in (first, later):
        assert all(1 <= stop.change <= 100 for stop in drawn if stop.change is not None)
        assert all(1.5 <= stop.after <= 10 for stop in drawn if stop.change is None)
    late = [sum(stop.change or 0 for stop in drawn) for drawn in (first, later)]
    assert late[0] > 1.2 * late[1] > 0


def test_what_was_made_and_what_was_expected_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = programs.Program("x", content=lambda folder: folder.read_text())
    assert programs.ended(program, programs.ProgramExit(3, "no"), "'a'") == ["does not go on: exit code 3: no"]
    (told,) = programs.ended(program, programs.ProgramExit(0, ""), "'a'")
    assert told.startswith("not readable")
    Path("made").write_text("a")
    assert programs.ended(program, programs.ProgramExit(0, ""), "'a'") == []
    assert programs.ended(program, programs.ProgramExit(0, ""), "'b'") == ["ends in something else than undisturbed"]


async def test_what_a_run_on_ray_is_compared_with_is_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "_SECONDS", 0.0)
    found = []
    for name in ("a", "b"):
        await on_ray._run(tmp_path / name, "")
        found.append(rows_of(tmp_path / name))
    lines, rows = found[0]
    assert lines == len(rows) == 2 * on_ray._QUESTIONS
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_forked_program_stops_itself_at_its_change_and_notes_when(tmp_path: Path) -> None:
    """Nothing that a forked program is given may stay with the next."""
    with closing(Nursery(["gnothi.cli.main"])) as nursery:
        code = "for name in 'abc': open(name, 'w').close()"
        before = time.monotonic()
        killed = nursery.start(code, [], tmp_path, {}, Start(change=2))
        assert killed.wait() == -signal.SIGKILL
        assert before < float((tmp_path / "struck").read_text()) < time.monotonic()
        assert [(tmp_path / name).exists() for name in "abc"] == [True, False, False]
        whole = nursery.start(code, [], tmp_path, {})
        assert whole.wait() == 0
        assert (tmp_path / "changes").read_text() == "3"
        assert not (tmp_path / "struck").read_text()
        starved = nursery.start("bytearray(50_000_000)", [], tmp_path, {}, Start(bytes=10_000_000))
        assert starved.wait() == 1
        assert "MemoryError" in (tmp_path / "said").read_text()
