"""What users get wrong: one clear message, the contract's exit code, nothing lost, no traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with a short context, in transformers format."""
    pytest.importorskip("transformers")
    from tests.models import tiny

    folder = tmp_path_factory.mktemp("tiny")
    model = tiny.build_model("llama")
    model.save_pretrained(folder)
    tiny.build_tokenizer().save_pretrained(folder)
    return folder


def test_a_question_longer_than_the_models_context(gnothi: Run, tiny_model: Path) -> None:
    code, out, err = gnothi("ask", "why " * 100_000, "--method", "direct", "--model", str(tiny_model))
    assert "does not fit" in err
    assert (code, out) == (2, "")


def test_a_folder_that_holds_no_model(gnothi: Run, tmp_path: Path) -> None:
    code, out, err = gnothi("ask", "Why?", "--method", "direct", "--model", str(tmp_path))
    assert str(tmp_path) in err
    assert (code, out) == (3, "")


def test_a_hub_id_that_cannot_be_had(gnothi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    code, out, err = gnothi("ask", "Why?", "--method", "direct", "--model", "nobody/no-such-model")
    assert "nobody/no-such-model" in err
    assert (code, out) == (3, "")


def test_a_configuration_file_that_is_not_toml(gnothi: Run, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b"\xff\xfe k = 1")
    code, _, err = gnothi("ask", "Why?", "--config", str(file))
    assert "not valid TOML" in err
    assert code == 2


def test_an_environment_variable_that_no_setting_has(gnothi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOTHI_TRESHOLD", "1")
    code, _, err = gnothi("ask", "Why?")
    assert "environment variable GNOTHI_TRESHOLD" in err
    assert "Did you mean 'threshold'?" in err
    assert code == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device that is always full")
def test_a_full_disk(gnothi: Run) -> None:
    code, out, err = gnothi("lab", "questions", "--out", "/dev/full")
    assert "disk is full" in err
    assert (code, out) == (3, "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("eval", "lap", "--out", "run"), 2, "unknown data set: got 'lap'. Did you mean 'lab'?"),
        (("eval", "absent.jsonl", "--out", "run"), 2, "no file absent.jsonl"),
        (("eval", "lab", "--method", "direct,raag", "--out", "run"), 2, "unknown method: got 'raag'. Did you mean 'rag'?"),
        (("eval", "lab", "--limit", "0", "--out", "run"), 2, "--limit"),
        (("eval", "broken.jsonl", "--out", "run"), 2, "broken.jsonl, line 2"),
        (("index", "search", "absent", "query"), 3, "absent"),
        (("index", "info", "absent"), 3, "absent"),
        (("index", "build", "absent.jsonl", "--out", "index"), 2, "absent.jsonl"),
        (("index", "build", "broken.jsonl", "--out", "index"), 2, "line 2"),
    ],
)
def test_bad_names_and_files(
    gnothi: Run, arguments: tuple[str, ...], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.jsonl").write_text('{"id": "1", "question": "Why?", "answers": ["so"], "text": "A passage."}\n{"id": \n')
    got, out, err = gnothi(*arguments)
    assert message in err
    assert (got, out) == (code, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("aks", "x"), "unknown command: got 'aks'. Did you mean 'ask'?"),
        (("train", "readr"), "unknown training: got 'readr'. Did you mean 'reader'?"),
        (("ask", "who", "wrote", "it"), 'Put it in quotes: gnothi ask "who wrote ..."'),
        (("ask", "x", "--set", "seaker.threshold=1"), "got 'seaker.threshold'. Did you mean 'seakr.threshold'?"),
        (("ask", "x", "--set", "method=rag"), "It is a parameter of its own: --method."),
        (("ask", "x", "--config", "."), "it is a folder. Is it config.toml?"),
        (("eval", "lab", "--config", ".", "--out", "r"), "it is a folder. Is it config.toml?"),
        (("report", "absent"), "there is no folder absent. Expected one written by `gnothi eval --out`."),
        (("report", "."), "cannot be read"),
        (("keys", "list", "keys.json"), "unexpected extra argument"),
        (("keys", "absent"), "there is no file of keys absent"),
        (("keys", "absent", "--revoke", "me"), "there is no file of keys absent"),
        (("keys", "absent", "--add", "me", "--revoke", "me"), "expected one of them"),
        (("index", "delete", "lab", "x"), "is only searched"),
        (("reproduce", "seakr/table1", "--only", "nope"), "unknown data set or row of seakr/table1: got 'nope'"),
        (("reproduce", "seakr", "--only", "nope"), "unknown data set or row of seakr: got 'nope'"),
        (("reproduce", "seakr/table1", "--markdown", "table.md"), "--markdown: got it without --out"),
        (("ask", "x", "--index", ""), "--index: got an empty text"),
        (("eval", "lab", "--model", "", "--out", "run"), "--model: got an empty text"),
        (("ask", "x", "--method", ""), "unknown method: got ''"),
        (("ask", "x", "--choice", "", "--choice", "a"), "none of them empty"),
        (("ask", "x", "--choice", "a", "--choice", "a"), "expected different texts"),
        (("report", "both.toml"), "both.toml is not a run"),
        (("list", "signals", "gramm"), "Did you mean 'gram'?"),
        (("ask", "x", "--config", "both.toml"), "A name is a value or a table"),
        (("ask", "x", "--method", "direct", "--set", "rag.k=3"), "it has no use here (methods: direct)"),
        (("train", "probe", "lab-train", "--out", "probe", "--set", "rag.k=3"), "it has no use here"),
        (("reproduce", "seakr", "--out", "study", "--set", "keqa.k=3"), "it has no use here"),
    ],
)
def test_plausible_mistakes(
    gnothi: Run, arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("[broken")
    (tmp_path / "both.toml").write_text('signal = "gram"\n[signal]\nsamples = 3\n')
    monkeypatch.chdir(tmp_path)
    code, out, err = gnothi(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert {one.name for one in tmp_path.iterdir()} == {"config.toml", "both.toml"}


@pytest.mark.usefixtures("scripted")
def test_the_setting_is_named_rather_than_what_follows_from_it(gnothi: Run, tmp_path: Path) -> None:
    command = ("eval", "lab", "--method", "direct", "--out", str(tmp_path / "run"), "--limit")
    assert gnothi(*command, "3")[0] == 0
    assert "was made with dataset.limit = 3, got 2" in gnothi(*command, "2")[2]
