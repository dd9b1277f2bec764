"""What tests share: real data for those that ask for them and for no others, one test for many cases, a port that is held, and
where kills of one piece of work may fall."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._data import find_data
from tests import conftest
from tests.cases import each
from tests.messages import refused
from tests.ports import held_port
from tests.stopping import moments

ROOT = Path(__file__).parents[1]
TESTS = """
from benchmarks._data import find_data

def test_asks(request, shared_data):
    assert request.node.get_closest_marker("data")
    assert (shared_data / "popqa.json").is_file()

def test_does_not(request, made_data):
    assert not request.node.get_closest_marker("data")
    assert find_data() is None
    assert (made_data / "popqa.json").is_file()
"""


def test_who_does_not_ask_finds_none() -> None:
    assert find_data() is None
    command = "from benchmarks._data import find_data; print(find_data())"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two tests, beside a folder of data."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = data\n", "utf-8")
    (folder / "conftest.py").write_text(Path(conftest.__file__).read_text("utf-8"), "utf-8")
    (folder / "test_it.py").write_text(TESTS, "utf-8")
    (tmp_path / "beside" / "data").mkdir(parents=True)
    (tmp_path / "beside" / "data" / "popqa.json").touch()
    return folder


def tried(project: Path, shared: str, *options: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path, "GNOTHI_SHARED": str(project.parent / shared)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *options]
    joined, pipe = subprocess.STDOUT, subprocess.PIPE
    return subprocess.run(command, cwd=project, env=environment, stdout=pipe, stderr=joined, text=True, check=False).stdout


def test_without_data_who_asks_skips_with_the_reason(project: Path) -> None:
    told = tried(project, "nowhere", "-m", "data")
    assert "1 skipped, 1 deselected" in told
    assert "needs real data: no shared/data in a parent folder" in told


def test_of_which_marks_files_without_such_tests_are_left_out(tmp_path: Path) -> None:
    none, both = tmp_path / "test_none.py", tmp_path / "test_both.py"
    none.touch()
    both.write_text("@pytest.mark.slow\ndef test_it(shared_data): ...", "utf-8")
    for wanted in ("data", "slow", "data and not slow", "(slow or data) and not long"):
        asked = cast(pytest.Config, SimpleNamespace(option=SimpleNamespace(markexpr=wanted)))
        assert conftest.pytest_ignore_collect(none, asked) is True
        assert conftest.pytest_ignore_collect(both, asked) is None
    for wanted in ("", "not slow", "slow or vllm", "slow and not long or data"):
        asked = cast(pytest.Config, SimpleNamespace(option=SimpleNamespace(markexpr=wanted)))
        assert conftest.pytest_ignore_collect(none, asked) is None


def test_a_mark_that_its_file_does_not_say_is_refused(project: Path) -> None:
    assert "2 passed" in tried(project, "beside")
    (project / "test_other.py").write_text("from test_it import test_asks", "utf-8")
    assert "test_other.py::test_asks is marked 'data' by another file" in tried(project, "beside")


def test_a_mark_may_come_from_the_conftest_of_the_folder_and_no_other_file_is_imported(project: Path) -> None:
    (project / "test_other.py").write_text("1 / 0", "utf-8")
    folder = project / "below"
    folder.mkdir()
    code = "import pytest\n\n@pytest.fixture\ndef popqa(shared_data):\n    return shared_data / 'popqa.json'\n"
    (folder / "conftest.py").write_text(code, "utf-8")
    (folder / "test_below.py").write_text("def test_it(popqa):\n    assert popqa.is_file()\n", "utf-8")
    assert "2 passed, 1 deselected" in tried(project, "beside", "-m", "(slow or data) and not long")


LIBRARY = """
import logging, sys

def test_is_imported(capsys):
    handler = logging.StreamHandler()
    handler.flush = sys.stderr.flush  # as transformers has it
    logging.getLogger("library").addHandler(handler)

def test_warns(capsys):
    logging.getLogger("library").warning("said")
    assert capsys.readouterr().err == "said\\n"
"""


def test_a_library_that_a_test_imports_says_in_later_ones_what_it_has_to_say(project: Path) -> None:
    """Its handler keeps the stream of that test, which closes it."""
    (project / "test_it.py").write_text(LIBRARY, "utf-8")
    told = tried(project, "nowhere")
    assert "2 passed" in told, told


def test_all_that_fail_are_named() -> None:
    tried = []

    def check(name: str, number: int) -> None:
        tried.append(name)
        assert number % 2, f"{number} is even"

    with pytest.raises(AssertionError) as raised:
        each(check, [("a", 1), ("b", 2), ("c", 4)])
    assert re.match(r"2 of 3 cases failed:\nb, 2: 2 is even\n(?s:.*)\nc, 4: 4 is even", str(raised.value))
    assert tried == ["a", "b", "c"]
    each(check, [("a", 1)])


def test_an_error_says_in_which_case() -> None:
    with refused(ValueError) as raised:
        each(int, [("3",), ("x",)])
    assert raised.value.__notes__ == ["in the case x"]


def test_no_case_is_no_success() -> None:
    with refused(AssertionError):
        each(int, [])


def test_a_server_listens_there_twice_and_others_get_other_ports() -> None:
    with held_port() as port:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        for _ in range(2):
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(("127.0.0.1", port))
                server.listen()
                with socket.create_connection(("127.0.0.1", port)):
                    server.accept()[0].close()
        with socket.socket() as other:
            with pytest.raises(OSError, match=f"Errno {errno.EADDRINUSE}"):
                other.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", 0))
            assert other.getsockname()[1] != port


@given(kills=st.integers(1, 10), more=st.integers(0, 100))
def test_every_kill_finds_the_work_unfinished(kills: int, more: int) -> None:
    steps = 3 * kills + more
    between = moments(steps, kills)
    assert len(between) == kills
    assert min(between) >= 1
    late = [counted + before for before, counted in enumerate(accumulate(between))]  # each kill before left one step more
    assert late[-1] < steps


def test_too_many_kills_are_told() -> None:
    with refused(AssertionError):
        moments(20, 8)
