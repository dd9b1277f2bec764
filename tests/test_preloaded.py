from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.preloaded import Preloaded

pytestmark = pytest.mark.slow


@pytest.fixture
def python(preloaded: Preloaded, tmp_path: Path) -> Path:
    return preloaded.client(tmp_path / "python")


PROGRAM = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ.get("MINE"), "torch" in sys.modules, __name__)
print(sys.stdin.read(), file=sys.stderr)
{end}
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [("", 0), ("sys.exit(3)", 3), ("sys.exit('no')", 1), ("1 / 0", 1), ("os.kill(os.getpid(), 9)", 137), ("os._exit(5)", 5)],
)
def test_a_program_has_what_the_client_has(python: Path, tmp_path: Path, end: str, code: int) -> None:
    (tmp_path / "here").mkdir()
    command = [str(python), "-c", PROGRAM.format(end="sys.stdout.flush()\n" + end), "a", "b c"]
    done = subprocess.run(
        command,
        input="said",
        cwd=tmp_path / "here",
        env=os.environ | {"MINE": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert done.stdout.strip() == f"['a', 'b c'] {tmp_path / 'here'} x True __main__"
    assert done.stderr.startswith("said\n")
    assert ("ZeroDivisionError" in done.stderr, "no\n" in done.stderr) == ("1 /" in end, "'no'" in end)


@pytest.mark.parametrize("given", [("-m", "mine"), ("mine.py",), ("-c", "import mine")])
def test_it_runs_as_by_python(python: Path, tmp_path: Path, given: Sequence[str]) -> None:
    """The same, whether Python itself or the server runs it."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "other.py").write_text("")
    (tmp_path / "mine.py").write_text("import sys, other\nprint(__name__, sys.argv, sys.path[0], other.__file__)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "beside")}
    told = [
        subprocess.run([program, *given, "x"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
        for program in (python, sys.executable)
    ]
    assert told[0] == told[1]


def test_programs_share_nothing(python: Path) -> None:
    for _ in range(2):
        code = "import torch, sys; assert not hasattr(torch, 'mine'); torch.mine = 1; print('new')"
        assert subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout == "new\n"


def test_a_program_ends_with_its_client(python: Path) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        pid = int(client.stdout.readline())
        ended = os.pidfd_open(pid)
        client.kill()
    assert select.select([ended], [], [], 120)[0]
    os.close(ended)
