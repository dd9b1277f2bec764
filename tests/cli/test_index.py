from __future__ import annotations

import json
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from gnothi.cli.main import run
from gnothi.retrieval.folder import FILE
from tests.cli.terminals import on_terminal
from tests.messages import complained
from tests.retrieval.cross_encoders import classifier
from tests.retrieval.documents import contents, made_up, write_jsonl
from tests.stopping import Stopping


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "heron.txt").write_text("The heron waits in shallow water.")
    (folder / "plums.md").write_text("# Plums\nSalted plums keep long.")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "index")


def gnothi(*arguments: object) -> int:
    return run(["index", *map(str, arguments)])


def complains(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 2) -> None:
    capsys.readouterr()
    complained((gnothi(*arguments), *capsys.readouterr()), code)


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Standard output, which must be one JSON document."""
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_build_search_info_delete(docs: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gnothi("build", docs, "--out", out) == 0
    shown = capsys.readouterr()
    assert f"{out}: 2 passages (2 added, changed or moved) from 2 files (0 unchanged)" in shown.out
    assert shown.err == ""
    assert gnothi("search", out, "salty plum salted", "-k", 1) == 0
    assert re.fullmatch(r" 1 +\d+\.\d{3}  docs/plums\.md#1  Plums\n    Salted plums keep long\.\n", capsys.readouterr().out)
    assert gnothi("info", out) == 0
    assert re.search(r"2 passages, .* MB on disk\nsources: 2 files\nformat: version 3", capsys.readouterr().out)
    assert gnothi("delete", out, "docs/plums.md#1", "nope") == 1
    shown = capsys.readouterr()
    assert "1 passage deleted (0 files), 1 left" in shown.out
    assert "no file or passage has the name 'nope'" in shown.err
    assert gnothi("search", out, "plums") == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Nothing found" in shown.err


def test_json_is_one_document(docs: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    (docs / "picture.png").write_bytes(b"\x89PNG")
    assert gnothi("build", docs, "--out", out, "--json") == 0
    report = document(capsys)
    assert (report["passages"], report["added"], report["skipped"]) == (2, 2, 1)
    assert gnothi("search", out, "heron", "--json") == 0
    found: Any = document(capsys)
    assert found["query"] == "heron"
    assert [result.pop("score") > 0 for result in found["results"]] == [True]
    text = "The heron waits in shallow water."
    assert found["results"] == [
        {"id": "docs/heron.txt#1", "title": "heron", "text": text, "metadata": {"source": "docs/heron.txt"}}
    ]
    assert gnothi("info", out, "--json") == 0
    facts = document(capsys)
    assert (facts["passages"], facts["sources"], facts["complete"], facts["version"]) == (2, 2, True, 3)
    assert gnothi("delete", out, "docs/heron.txt#1", "--json") == 0
    deleted = document(capsys)
    assert (deleted["deleted"], deleted["missing"], deleted["passages"]) == (1, [], 1)


def test_sources_are_listed(docs: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    gnothi("build", docs, "--out", out)
    (docs / "heron.txt").unlink()
    capsys.readouterr()
    assert gnothi("info", out, "--files") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(line[0], *line[3:]) for line in lines] == [("1", "gone", "docs/heron.txt"), ("1", "read", "docs/plums.md")]
    assert gnothi("info", out, "--files", "--json") == 0
    found: Any = document(capsys)["sources"]
    assert [(one["source"], one["state"], one["passages"], one["path"]) for one in found] == [
        ("docs/heron.txt", "gone", 1, str(docs / "heron.txt")),
        ("docs/plums.md", "read", 1, str(docs / "plums.md")),
    ]
    complains(capsys, "info", f"{out}-not-there", "--files", code=3)


@pytest.mark.parametrize("name", ["docs/heron.txt", "{docs}/heron.txt", "docs", "{docs}", "docs/heron.txt#1"])
def test_sources_are_deleted(docs: Path, out: str, capsys: pytest.CaptureFixture[str], name: str) -> None:
    gnothi("build", docs, "--out", out)
    capsys.readouterr()
    whole, passage = name.endswith("docs") or name == "{docs}", "#" in name
    assert gnothi("delete", out, name.format(docs=docs), "nope", "--json") == 1
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    files = [] if passage else ["docs/heron.txt", "docs/plums.md"] if whole else ["docs/heron.txt"]
    assert (found["deleted"], found["sources"], found["missing"]) == (max(1, len(files)), files, ["nope"])
    assert found["passages"] == len(contents(Path(out))) == 2 - found["deleted"]
    assert ("still there" in shown.err) is not passage
    gnothi("build", docs, "--out", out)
    assert len(contents(Path(out))) == (1 if passage else 2)  # a passage comes back only when its file changes


def test_keys_of_records(tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "news.jsonl"
    source.write_text('{"number": 7, "headline": "Plums", "story": "Salted plums keep."}\n')
    assert gnothi("build", source, "--out", out, "--text-key", "story", "--title-key", "headline", "--id-key", "number") == 0
    (kept,) = contents(Path(out)).values()
    assert (kept.id, kept.title, kept.text) == ("7", "Plums", "Salted plums keep.")
    capsys.readouterr()
    assert gnothi("build", source, "--out", f"{out}-2", "--graph", "--text-key", "story") != 0
    assert "--text-key" in capsys.readouterr().err
    source.write_text('{"question": "Who?", "answer": "x"}\n')
    complains(capsys, "build", source, "--out", f"{out}-3")


def test_the_language_of_an_index(tmp_path: Path, docs: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "german.txt").write_text("Die Bäume am Fluss.")
    assert gnothi("build", tmp_path / "german.txt", "--out", out, "--language", "de") == 0
    assert gnothi("search", out, "Baum") == 0
    assert "german.txt#1" in capsys.readouterr().out
    assert gnothi("info", out) == 0
    assert "language: german\nfields: cross\nterms: Latin words: german stems" in capsys.readouterr().out
    complains(capsys, "build", docs, "--out", out, "--language", "french")


def test_an_invalid_line_and_skip_invalid(tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "corpus.jsonl"
    source.write_text('{"id":"a","text":"x"}\n{"id":"b"}\n{"id":"c","text":"z"}\n')
    complains(capsys, "build", source, "--out", out)
    assert gnothi("build", source, "--out", out, "--skip-invalid") == 0
    warnings = capsys.readouterr().err
    assert "1 invalid line left out" in warnings
    assert "line 2" in warnings
    assert set(contents(Path(out))) == {"a", "c"}


def test_warnings_name_what_was_left_out(docs: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    (docs / "binary.txt").write_bytes(b"\0\0")
    (docs / "empty.txt").write_bytes(b"")
    write_jsonl(docs / "z.jsonl", made_up(1, 1) * 2)
    (docs / "picture.png").write_bytes(b"\x89PNG")
    assert gnothi("build", docs, "--out", out) == 1
    warnings = capsys.readouterr().err
    for part in (
        "1 file not readable, or not to the end",
        "1 file skipped",
        "binary.txt is a binary file",
        "empty.txt holds no text",
        "records or files without text left out: 1",
    ):
        assert part in warnings
    assert "z.jsonl has passages of the same id: only the last of them is kept" in warnings


def test_a_star_that_is_not_at_the_end_is_told_where_nothing_is_found(
    docs: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "a*b.txt").write_text("The heron has a star.")
    assert gnothi("build", docs, "--out", out) == 0
    for value, told in (
        ("*heron*", True),
        ("docs/he*n.txt,*.md", True),
        ("docs/*", False),
        ("nix*", False),
        ("docs/a*b.txt", False),
    ):
        capsys.readouterr()
        assert gnothi("search", out, "heron", "--filter", f"source={value}") == 0
        assert ("stands for any letters only at the end of a value" in capsys.readouterr().err) == told, value


def test_ids_that_two_files_have_are_told_by_build_info_and_an_empty_search(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = tmp_path / "exports"
    docs.mkdir()
    (docs / "a.csv").write_text("id,text\n1,Alpha lives in Oslo.\n2,Gamma lives in Paris.\n")
    (docs / "b.jsonl").write_text('{"id": "1", "text": "Beta lives in Rome."}\n')
    told = f"{docs / 'a.csv'} has 1 passage with an id that exports/b.jsonl has too"
    assert gnothi("build", docs, "--out", out) == 0
    assert told in capsys.readouterr().err
    assert gnothi("build", docs, "--out", out) == 0
    assert gnothi("info", out) == 0
    assert told in capsys.readouterr().out
    assert gnothi("search", out, "Oslo") == 0
    assert f"1 file read with a notice: gnothi index info {out} says which." in capsys.readouterr().err
    (docs / "b.jsonl").write_text('{"id": "3", "text": "Beta lives in Rome."}\n')
    assert gnothi("build", docs, "--out", out) == 0
    assert gnothi("info", out) == 0
    assert "has too" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["passages", "graph"])
def test_nothing_to_index_makes_no_index_and_leaves_one_that_is_there(
    kind: str, docs: Path, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--out", out, *(["--graph"] if kind == "graph" else [])]
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "picture.png").write_bytes(b"\x89PNG")
    complains(capsys, "build", tmp_path / "empty", tmp_path / "other", *flags)
    assert not Path(out).exists()
    (docs / "tea.tsv").write_text("tea\tis\thot\n")
    assert gnothi("build", docs, *flags) == 0
    assert gnothi("build", tmp_path / "empty", *flags) == 0
    assert gnothi("search", out, "plums tea") == 0


@pytest.mark.parametrize("kind", ["passages", "graph"])
def test_what_is_no_folder_of_documents_is_no_source_and_what_is_no_folder_no_index(
    kind: str, docs: Path, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--graph"] if kind == "graph" else []
    (docs / "tea.tsv").write_text("tea\tis\thot\n")
    assert gnothi("build", docs, "--out", out, *flags) == 0
    for to in (tmp_path / "second", out):
        complains(capsys, "build", docs, out, "--out", to, *flags)
    assert not (tmp_path / "second").exists()
    complains(capsys, "build", docs, "--out", docs / "tea.tsv", *flags)
    assert (docs / "tea.tsv").read_text() == "tea\tis\thot\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("build gone.txt --out x", 2),
        ("build --out x", 2),
        ("build gone.txt", 2),
        ("search gone heron", 3),
        ("search gone '  '", 2),
        ("search gone heron -k 0", 2),
        ("info gone", 3),
        ("delete gone a", 3),
    ],
)
def test_mistakes(
    arguments: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    complains(capsys, *shlex.split(arguments), code=code)
    assert list(tmp_path.iterdir()) == []


def test_another_version_and_a_second_writer(docs: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    from gnothi.retrieval.writer import IndexWriter

    gnothi("build", docs, "--out", out)
    with IndexWriter(out):
        complains(capsys, "build", docs, "--out", out, code=3)
    manifest = Path(out) / FILE
    manifest.write_text(manifest.read_text().replace('"version": 3', '"version": 4'))
    for arguments in (["search", out, "x"], ["info", out], ["build", docs, "--out", out], ["delete", out, "x"]):
        complains(capsys, *arguments, code=3)


def test_the_built_in_corpus_can_be_searched(capsys: pytest.CaptureFixture[str]) -> None:
    assert gnothi("search", "lab", "the capital city", "-k", 2, "--json") == 0
    assert len(document(capsys)["results"]) == 2  # type: ignore[arg-type]


def test_ctrl_c_leaves_a_build_that_goes_on(tmp_path: Path, out: str) -> None:
    corpus = made_up(1, 1500)
    source = write_jsonl(tmp_path / "corpus.jsonl", corpus)
    process = Stopping("tests.cli.stopping_index", "build", str(source), "--out", out)
    process.go_until(lambda: (Path(out) / "meta.json").exists() and contents(Path(out)))
    process.interrupt(signal.SIGINT)
    _, errors = process.ended()
    assert process.returncode == 130
    assert "run the same command again" in errors
    assert "Traceback" not in errors
    assert 0 < len(contents(Path(out))) < len(corpus)
    assert gnothi("build", source, "--out", out) == 0
    assert len(contents(Path(out))) == len(corpus)


def test_a_terminal_gets_a_bar_with_rate_and_time_left(tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.cli.building._SECONDS_BETWEEN_FRAMES", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    source = write_jsonl(tmp_path / "corpus.jsonl", made_up(1, 200))
    with on_terminal("stderr") as shown:
        assert gnothi("build", source, "--out", out) == 0
    assert re.search(r"\d+ passages, [\d,]+/s", shown.decode())
    assert re.search(r"\d:\d\d:\d\d|-:--:--", shown.decode())


def test_elsewhere_progress_is_a_plain_line_now_and_then(
    tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gnothi.cli.building._SECONDS_BETWEEN_LINES", 0.0)
    assert gnothi("build", write_jsonl(tmp_path / "c.jsonl", made_up(1, 50)), "--out", out) == 0
    assert re.search(r"^\d+ passages, \d+%, [\d,]+ passages/s, about \d+ s left$", capsys.readouterr().err, re.MULTILINE)


def test_vectors_are_made_searched_and_told(docs: Path, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encoder = classifier(tmp_path / "encoder", architecture="BertModel")
    assert gnothi("build", str(docs), "--out", out) == 0
    complains(capsys, "search", f"dense:{out}", "heron", code=3)
    complains(capsys, "embed", out)
    complains(capsys, "embed", out, "--passage-prompt", "passage: ")
    assert gnothi("embed", out, "--encoder", encoder) == 0
    assert "2 passages with vectors of 16 numbers (2 encoded, 0 dropped)" in capsys.readouterr().out
    assert gnothi("embed", out, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["passages"], again["encoded"], again["encoder"]) == (2, 0, encoder)
    for spec in (f"dense:{out}", f"hybrid:{out}"):
        assert gnothi("search", spec, "a heron stands", "--json") == 0
        assert len(json.loads(capsys.readouterr().out)["results"]) == 2
    assert gnothi("info", out) == 0
    told = capsys.readouterr().out
    assert f"vectors: 2 passages, 16 numbers, by {encoder}" in told
    assert "Not all passages" not in told
    assert gnothi("delete", out, "docs/heron.txt#1") == 0
    capsys.readouterr()
    assert gnothi("info", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["dense"]["complete"] is False
    complains(capsys, "search", f"hybrid:{out}", "heron", code=3)


def test_what_documents_say_does_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "Heron \x1b[31m\x9b2J\x1b]0;title\x07 \u202ereversed"
    line = json.dumps({"id": "x\x1b[1m", "title": hostile, "text": f"heron {hostile}"})
    (tmp_path / "d.jsonl").write_text(line + "\n", encoding="utf-8")
    (tmp_path / "broken\x1b[31m.pdf").write_bytes(b"no PDF")
    out = str(tmp_path / "index")
    assert run(["index", "build", str(tmp_path), "--out", out]) in (0, 1)
    assert run(["index", "search", out, "heron"]) == 0
    printed = "".join(capsys.readouterr())
    assert "reversed" in printed
    assert not {letter for letter in printed if not letter.isprintable()} - {"\n"}


@pytest.mark.parametrize("kind", [(), ("--graph",)])
def test_what_a_folder_says_of_itself_does_not_steer_the_terminal(
    tmp_path: Path, kind: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.tsv").write_text("head\trelation\ttail\na\tb\tc\n" if kind else "id\ttext\n1\theron\n")
    out = tmp_path / "made"
    assert run(["index", "build", str(tmp_path / "d.tsv"), *kind, "--out", str(out)]) == 0
    (file,) = out.glob("gnothi-*.json")
    said = json.loads(file.read_text())
    file.write_text(json.dumps(said | {"created_by": "1\x1b[31m\u202e"}))
    capsys.readouterr()
    for command in (["index", "info", str(out)], ["index", "info", str(out), "--json"]):
        run(command)
        printed = "".join(capsys.readouterr())
        assert "[31m" in printed
        assert not {letter for letter in printed if not letter.isprintable()} - {"\n"}


def test_a_manifest_nested_too_deep_is_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.txt").write_text("heron")
    out = tmp_path / "made"
    assert run(["index", "build", str(tmp_path / "d.txt"), "--out", str(out)]) == 0
    (out / "gnothi-index.json").write_text("[" * 100_000)
    for command in (["info", str(out)], ["search", str(out), "heron"], ["delete", str(out), "d.txt"]):
        complains(capsys, *command, code=3)


def test_searching_an_unfinished_index_says_so(docs: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    gnothi("build", docs, "--out", out)
    manifest = Path(out) / FILE
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"complete": False}))
    for query in ("heron", "nowhere"):
        capsys.readouterr()
        assert gnothi("search", out, query) == 0
        assert "warning: a build is under way, failed or was interrupted" in capsys.readouterr().err
