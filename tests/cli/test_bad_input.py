"""What users get wrong: one clear message, the contract's exit code, nothing lost, no traceback."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.command_line import Run
from tests.messages import complained


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
    complained(gnothi("ask", "why " * 100_000, "--method", "direct", "--model", str(tiny_model)))


def test_a_folder_that_holds_no_model(gnothi: Run, tmp_path: Path) -> None:
    complained(gnothi("ask", "Why?", "--method", "direct", "--model", str(tmp_path)), 3)


def test_a_hub_id_that_cannot_be_had(gnothi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    complained(gnothi("ask", "Why?", "--method", "direct", "--model", "nobody/no-such-model"), 3)


def test_a_configuration_file_that_is_not_toml(gnothi: Run, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b"\xff\xfe k = 1")
    complained(gnothi("ask", "Why?", "--config", str(file)))


def test_an_environment_variable_that_no_setting_has(gnothi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOTHI_TRESHOLD", "1")
    complained(gnothi("ask", "Why?"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device that is always full")
def test_a_full_disk(gnothi: Run) -> None:
    complained(gnothi("lab", "questions", "--out", "/dev/full"), 3)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("eval lap --out run", 2),
        ("eval absent.jsonl --out run", 2),
        ("eval lab --method direct,raag --out run", 2),
        ("eval lab --limit 0 --out run", 2),
        ("eval broken.jsonl --out run", 2),
        ("index search absent query", 3),
        ("index info absent", 3),
        ("index build absent.jsonl --out index", 2),
        ("index build broken.jsonl --out index", 2),
    ],
)
def test_bad_names_and_files(gnothi: Run, arguments: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.jsonl").write_text('{"id": "1", "question": "Why?", "answers": ["so"], "text": "A passage."}\n{"id": \n')
    complained(gnothi(*arguments.split()), code)


@pytest.mark.parametrize(
    "arguments",
    [
        "aks x",
        "train readr",
        "ask who wrote it",
        "ask x --set seaker.threshold=1",
        "ask x --set method=rag",
        "ask x --config .",
        "eval lab --config . --out r",
        "report absent",
        "report .",
        "keys list keys.json",
        "keys absent",
        "keys absent --revoke me",
        "keys absent --add me --revoke me",
        "index delete lab x",
        "reproduce seakr/table1 --only nope",
        "reproduce seakr --only nope",
        "reproduce seakr/table1 --markdown table.md",
        "ask x --index ''",
        "eval lab --model '' --out run",
        "ask x --method ''",
        "ask x --choice '' --choice a",
        "ask x --choice a --choice a",
        "report both.toml",
        "list signals gramm",
        "ask x --config both.toml",
        "ask x --method direct --set rag.k=3",
        "train probe lab-train --out probe --set rag.k=3",
        "reproduce seakr --out study --set keqa.k=3",
    ],
)
def test_plausible_mistakes(gnothi: Run, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("[broken")
    (tmp_path / "both.toml").write_text('signal = "gram"\n[signal]\nsamples = 3\n')
    monkeypatch.chdir(tmp_path)
    complained(gnothi(*shlex.split(arguments)))
    assert {one.name for one in tmp_path.iterdir()} == {"config.toml", "both.toml"}


@pytest.mark.usefixtures("scripted")
def test_the_setting_is_named_rather_than_what_follows_from_it(gnothi: Run, tmp_path: Path) -> None:
    command = ("eval", "lab", "--method", "direct", "--out", str(tmp_path / "run"), "--limit")
    assert gnothi(*command, "3")[0] == 0
    assert "was made with dataset.limit = 3, got 2" in gnothi(*command, "2")[2]
