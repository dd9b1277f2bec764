"""The entry point: help without heavy imports, errors as one line and an exit code, whatever the environment; and commands call
the Python interface."""

from __future__ import annotations

import ast
import errno
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from gnothi import cli, errors
from gnothi.cli import main
from gnothi.methods.registry import METHODS
from tests.command_line import KNOWN, Run
from tests.messages import complained
from tests.patience import PATIENCE

Raise = Callable[[BaseException | int | None], int]


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> Raise:
    """Runs a command `fail` that raises what it is given, or returns it."""

    def run(raised: BaseException | int | None) -> int:
        @click.command()
        def fail() -> int | None:
            if isinstance(raised, BaseException):
                raise raised
            return raised

        monkeypatch.setattr(sys.modules[__name__], "fail", fail, raising=False)
        monkeypatch.setitem(main.COMMANDS, "fail", (f"{__name__}:fail", "Fails."))
        return main.run(["fail"])

    return run


@pytest.mark.parametrize(
    ("raised", "exit_code"),
    [
        (None, 0),
        (1, 1),
        (errors.TooManyFailures("too many failures"), 1),
        (errors.UnknownName("method", "seaker", ["seakr"]), 2),
        (errors.InvalidSetting("a setting"), 2),
        (errors.IndexUnavailable("no index"), 3),
        (errors.ModelUnavailable("no model"), 3),
        (errors.MissingDependency("torch", "local", "a local model"), 3),
        (OSError(errno.ENOSPC, "No space left on device", "runs/rows.jsonl"), 3),
        (OSError(errno.EFBIG, "File too large", "runs/rows.jsonl"), 3),
        (PermissionError(errno.EACCES, "Permission denied", "secret"), 3),
        (MemoryError(), 3),
        (RuntimeError("can't start new thread"), 3),
        (KeyboardInterrupt(), 130),
        (click.UsageError("no such option"), 2),
        (click.exceptions.Exit(1), 1),
    ],
)
def test_each_outcome_has_its_exit_code(
    outcome: Raise, raised: BaseException | int | None, exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(raised) == exit_code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    if isinstance(raised, errors.GnothiError):
        assert captured.err == f"gnothi: {raised}\n"


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "disk is full"), (errno.EFBIG, "no file grow longer")]
)
def test_a_full_disk_is_named(outcome: Raise, number: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome(OSError(number, os.strerror(number), "runs/rows.jsonl"))
    message = capsys.readouterr().err
    assert f"{said}: cannot write runs/rows.jsonl. What was written before is kept" in message
    assert "same command again" in message


def test_an_interrupt_says_how_to_go_on(outcome: Raise, capsys: pytest.CaptureFixture[str]) -> None:
    outcome(KeyboardInterrupt())
    assert "same command" in capsys.readouterr().err


def test_debug_shows_where(outcome: Raise, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GNOTHI_DEBUG", "1")
    outcome(errors.InvalidSetting("a setting"))
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("raised", "what"),
    [
        (MemoryError(), "memory"),
        (RuntimeError("can't start new thread"), "threads"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."), "memory"),
        (ImportError("libquadmath.so.0: failed to map segment from shared object"), "memory"),
    ],
)
def test_what_the_system_is_short_of_is_named(
    outcome: Raise, raised: BaseException, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome(raised)
    said = capsys.readouterr().err
    assert f"gives no more {what}" in said
    assert "same command again" in said


def test_a_bug_is_not_hidden(outcome: Raise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "place_of", lambda _: None)  # as if no line of this file were on the way to it
    with pytest.raises(RuntimeError):
        outcome(RuntimeError("a bug"))
    with pytest.raises(ImportError):
        outcome(ImportError("a bug"))
    with pytest.raises(ZeroDivisionError):
        outcome(ZeroDivisionError("a bug"))


@pytest.mark.parametrize("name", list(main.COMMANDS))
def test_every_command_has_help_that_matches_the_overview(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: gnothi {name}")


def test_unknown_commands_and_options_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["aks"]) == 2
    assert main.run(["--nonsense"]) == 2
    assert main.run(["ask"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("gnothi, version ")


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    source = Path(main.__file__).parents[2]
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(source)} | environment,
        check=False,
        timeout=PATIENCE,
    )


HEAVY = ("torch", "transformers", "numpy", "scipy", "tantivy", "matplotlib", "rich")


COUNTED = f"""
import sys
calls = 0
def count(frame, event, given):
    global calls
    calls += event == "call"
sys.setprofile(count)
from gnothi.cli.main import run
code = run(["--help"])
sys.setprofile(None)
print(code, calls, len(sys.modules), *(name for name in {HEAVY!r} if name in sys.modules))
"""


def test_help_imports_nothing_heavy_and_is_quick() -> None:
    """Work is counted in calls and modules, which are the same on every machine: 26,000 and 122, in a twentieth of a second."""
    code, calls, modules, *heavy = python("-c", COUNTED).stdout.splitlines()[-1].split()
    assert (code, heavy) == ("0", [])
    assert int(calls) < 60_000
    assert int(modules) < 250


def test_building_an_index_imports_nothing_of_models_and_statistics() -> None:
    names = "{'torch', 'transformers', 'scipy', 'matplotlib'}"
    assert (
        python("-c", f"import sys, gnothi.cli.index, gnothi.retrieval.build; print({names} & {{*sys.modules}})").stdout
        == "set()\n"
    )


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)  # before it can have written
    ended = subprocess.run(
        [sys.executable, "-m", "gnothi", "list", "methods"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(main.__file__).parents[2])},
        check=False,
        timeout=PATIENCE,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (main.BROKEN_PIPE, "")


def test_what_a_message_repeats_does_not_steer_the_terminal(outcome: Raise, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(errors.InvalidInput("a.toml: got \x1b[2J\x9b and \u202e,\nexpected <--k 5>.")) == 2
    assert capsys.readouterr().err == "gnothi: a.toml: got \ufffd[2J\ufffd and \ufffd,\nexpected --k 5.\n"


@pytest.mark.parametrize(
    ("line", "told"), [("1 / 0", "ZeroDivisionError: division by zero"), ("await steps.search(3, 1)", "got 3")]
)
def test_what_a_method_of_the_users_own_raises_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    (tmp_path / "of_a_user.py").write_text(f"async def wrong(steps, question):\n    return {line}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "of_a_user", raising=False)
    try:
        assert main.run(["ask", "Who?", "--method", "of_a_user:wrong", "--model", "lab", "--index", "lab"]) in (1, 2)
    finally:
        METHODS.remove("wrong")
    shown = capsys.readouterr().err
    assert told in shown
    assert "Traceback" not in shown


FILES = sorted(Path(cli.__file__).parent.glob("*.py"))
WORK = {"resolve", "with_questions", "opened", "opened_methods", "claimed", "execute", "collect", "ask_method", "open_model"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_command_has_a_way_of_its_own(file: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    taken = {name.name for node in imports if (node.module or "").startswith("gnothi.session") for name in node.names}
    assert not taken & WORK


ROOT = Path(__file__).parents[2]
C_LOCALE = {"LC_ALL": "C", "LANG": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom the system does not know."""
    for name in ("HOME", "GNOTHI_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.setattr(pwd, "getpwuid", unknown)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "nötes"
    folder.mkdir()
    (folder / "zürich.txt").write_text("Zoë lived in Zürich.", "utf-8")
    return folder


@pytest.mark.usefixtures("scripted", "nobody")
@pytest.mark.parametrize("command", ["cache", "cache --clear"])
def test_without_a_home_a_folder_for_replies_is_asked_for(gnothi: Run, command: str) -> None:
    complained(gnothi(*command.split()))


@pytest.mark.usefixtures("scripted", "nobody")
def test_without_a_home_but_with_a_folder_or_without_replies_kept_all_works(
    gnothi: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, run = str(tmp_path / "index"), str(tmp_path / "run")
    assert gnothi("index", "build", str(notes), "--out", index)[0] == 0
    assert gnothi("ask", KNOWN, "--model", "lab", "--no-cache")[0] == 0
    assert gnothi("eval", "lab", "--method", "direct", "--limit", "2", "--no-cache", "--out", run)[0] == 0
    assert gnothi("report", run)[0] == 0
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "cäche"))
    assert gnothi("cache")[0] == 0


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("home", ["nowhere", "file"])
def test_a_home_that_cannot_be_written(gnothi: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    (tmp_path / "file").write_text("no folder")
    for name in ("GNOTHI_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / home))
    assert gnothi("ask", KNOWN, "--model", "lab")[0] == 0
    assert gnothi("cache")[0] == 0


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output(closed: str) -> None:
    command = f'"{sys.executable}" -m gnothi list signals {closed}'
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("scripted")
def test_folders_with_letters_of_all_kinds(gnothi: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert gnothi("index", "build", notes.name, "--out", "ïndex")[0] == 0
    given = ("--model", "lab", "--index", "ïndex", "--method", "rag")
    Path("fragen-ü.jsonl").write_text(json.dumps({"question": "Zürich?", "answers": ["Zoë"]}), "utf-8")
    assert gnothi("eval", "fragen-ü.jsonl", *given, "--out", "läufe/東京")[0] == 0
    assert gnothi("report", "läufe/東京", "--html", "bericht-ü.html")[0] == 0
    assert gnothi("export", "läufe/東京", "--to", "jsonl", "--out", "ü.jsonl")[0] == 0


@pytest.mark.usefixtures("scripted")
def test_what_is_no_text(gnothi: Run, notes: Path, tmp_path: Path) -> None:
    question, index = "Who in Z\udcfcrich?", str(tmp_path / "index")
    Path(os.fsdecode(os.fsencode(notes) + b"/b\xe9d.txt")).write_text("A heron.")
    assert gnothi("index", "build", str(notes), "--out", index)[0] == 0
    assert gnothi("index", "search", index, "heron")[0] == 0
    assert gnothi("index", "search", index, question)[0] == 0
    assert gnothi("index", "info", index, "--files")[0] == 0
    assert gnothi("ask", question, "--model", "lab", "--index", index, "--method", "rag", "--json")[0] == 0
    assert gnothi("index", "search", "no-\udcfc-index", "heron")[0] == 3
    assert gnothi("ask", "Who?", "--model", "no-\udcfc-model")[0] in (2, 3)


def test_a_locale_or_a_pipe_that_knows_ascii_only(notes: Path, tmp_path: Path) -> None:
    def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "gnothi", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
            capture_output=True,
            check=False,
        )

    assert run(C_LOCALE, "index", "build", notes.name, "--out", "ümläut").returncode == 0
    found = run(C_LOCALE, "index", "search", "ümläut", "Zürich", "--json")
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout.decode())
    assert document["query"] == "Zürich"
    assert document["results"][0]["id"] == "nötes/zürich.txt#1"
    for environment in (C_LOCALE, {"PYTHONIOENCODING": "ascii:strict"}):
        plain = run(environment, "index", "search", "ümläut", "Zürich")
        assert (plain.returncode, b"lived in" in plain.stdout) == (0, True)
