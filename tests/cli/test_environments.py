"""Users without a home, locales without UTF-8, names that are no text: an answer or one sentence, never a traceback."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import KNOWN, Run
from tests.messages import complained

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


@pytest.mark.parametrize("environment", [C_LOCALE, {"PYTHONIOENCODING": "ascii:strict"}], ids=["C", "ascii"])
def test_a_locale_or_a_pipe_that_knows_ascii_only(notes: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "gnothi", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
            capture_output=True,
            check=False,
        )

    assert run("index", "build", notes.name, "--out", "ümläut").returncode == 0
    found = run("index", "search", "ümläut", "Zürich", "--json")
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout.decode())
    assert document["query"] == "Zürich"
    assert document["results"][0]["id"] == "nötes/zürich.txt#1"
    plain = run("index", "search", "ümläut", "Zürich")
    assert (plain.returncode, b"lived in" in plain.stdout) == (0, True)
