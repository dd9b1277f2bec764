"""What is said on stderr."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gnothi.cli import saying
from gnothi.cli.main import run

DEEP = "a = " + "[" * 5_000 + "]" * 5_000
LONG = "a = " + "9" * 5_000


def test_it_is_one_text_that_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    saying.say("warning: \x1b[31m \u202edesrever\nuse <--index PATH>")
    assert (
        capsys.readouterr().err
        == "warning: \N{REPLACEMENT CHARACTER}[31m \N{REPLACEMENT CHARACTER}desrever\nuse --index PATH\n"
    )


def test_nothing_else_in_the_command_line_writes_to_stderr() -> None:
    """Bars and tables of rich aside."""
    files = Path(saying.__file__).parent.glob("*.py")
    found = [file.name for file in files if re.search(r"echo\(.*err=True|^\s*err=True", file.read_text("utf-8"), re.MULTILINE)]
    assert found == ["saying.py"]


@pytest.mark.parametrize("content", [DEEP, LONG], ids=["nested", "long"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "Who?", "--calibration", "FILE"),
        ("ask", "Who?", "--config", "FILE"),
        ("ask", "Who?", "--set", "model.demonstrations=FILE"),
        ("index", "build", "facts.tsv", "--graph", "--templates", "FILE", "--out", "made"),
        ("index", "search", "postgres:FILE", "heron"),
        ("reproduce", "FILE", "--out", "made"),
        ("report", "run", "--prices", "FILE"),
        ("eval", "lab", "--method", "direct", "--out", "run"),
    ],
)
def test_settings_that_python_cannot_read_are_refused(
    arguments: tuple[str, ...],
    content: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    for file in ("FILE", "FILE.toml", "run/config.toml"):
        (tmp_path / file).write_text(content)
    (tmp_path / "facts.tsv").write_text("head\trelation\ttail\na\tb\tc\n")
    assert run([one.replace("FILE", str(tmp_path / "FILE.toml")) for one in arguments]) in (2, 3)
    said = capsys.readouterr().err
    assert said.startswith("gnothi: ")
    assert re.search("TOML|cannot be read|recursion|digits", said)
