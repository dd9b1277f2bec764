from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gnothi.models.identity import Identity, content, identify, shown_to


def folder(path: Path, weights: bytes = b"weights") -> Path:
    path.mkdir()
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(weights)
    (path / "gnothi.json").write_text("{}")
    return path


def test_a_folder_is_known_by_what_it_holds_wherever_it_lies(tmp_path: Path) -> None:
    one = identify(str(folder(tmp_path / "one")))
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    os.utime(tmp_path / "copy" / "config.json", (0, 0))
    (tmp_path / "copy" / "gnothi.json").write_text('{"thresholds": {"gram": -3}}')
    copied = identify(str(tmp_path / "copy"))
    assert one.fingerprint == copied.fingerprint
    assert one.same(copied)
    assert content(str(tmp_path / "one")) != content(str(tmp_path / "copy"))
    (tmp_path / "copy" / "chat_template.jinja").write_text("{{ messages }}")
    assert not one.same(identify(str(tmp_path / "copy")))
    trained = identify(str(folder(tmp_path / "trained", b"Weights")))
    assert not one.same(trained)


def test_large_files_are_told_apart_by_either_end(tmp_path: Path) -> None:
    size = 3 << 20
    plain = identify(str(folder(tmp_path / "plain", bytes(size)))).fingerprint
    last = identify(str(folder(tmp_path / "last", bytes(size - 1) + b"1"))).fingerprint
    longer = identify(str(folder(tmp_path / "longer", bytes(size + 1)))).fingerprint
    assert len({plain, last, longer}) == 3


def test_the_lab_model_under_any_backend() -> None:
    assert identify("lab").fingerprint
    assert identify("lab").same(identify("vllm:lab"))


@pytest.mark.parametrize("spec", ["openai:some", "no/such-model", "no such/model at all", "/nowhere"])
def test_where_only_the_name_is_known_it_decides(spec: str) -> None:
    found = identify(spec)
    assert found == Identity(spec)
    assert not content(spec)
    assert found.same(Identity(spec))
    assert not found.same(Identity("other"))


def test_a_model_is_shown_what_it_was_trained_with(tmp_path: Path) -> None:
    trained = folder(tmp_path / "trained")
    assert shown_to(str(trained), "auto") == "default"
    (trained / "gnothi.json").write_text('{"demonstrations": "skill-rag"}')
    assert shown_to(str(trained), "auto") == "skill-rag"
    assert shown_to(f"vllm:{trained}", "auto") == "skill-rag"
    assert shown_to(str(trained), "short") == "short"
    (trained / "gnothi.json").write_text('{"demonstrations": "tasks.toml"}')
    (trained / "tasks.toml").write_text("[answer]")
    assert shown_to(str(trained), "auto") == str(trained / "tasks.toml")
