"""The reader that the laboratory ships for IEKR, and when it is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gnothi.config import read_settings
from gnothi.models.identity import declaration_of, identify
from gnothi.protocols import LanguageModel
from gnothi.session.plan import Request, resolve
from gnothi.training.reader.job import TrainableReader


def values(*overrides: str, **given: Any) -> tuple[Any, Any, Any]:
    (method,) = resolve(Request(methods=["iekr"], settings=read_settings(overrides=overrides), **given)).methods
    return method.values["reader"], method.values["reason"], method.named.get("reader")


def test_iekr_has_it_by_default() -> None:
    assert values() == ("lab-reader", False, (LanguageModel, "lab-reader"))
    assert values("m=10")[0] == "lab-reader"


@pytest.mark.parametrize("given", ["reader=none", "iekr.reader=none", "gate=gram", "reason=auto", "iekr.reason=true"])
def test_whoever_wants_another_has_it(given: str) -> None:
    assert values(given)[0] is None
    assert values("reader=lab")[0] == "lab"


def test_other_models_and_methods_do_without(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert values(model=str(tmp_path), graph="lab")[0] is None
    (rag,) = resolve(Request(methods=["rag"], settings=read_settings())).methods
    assert "reader" not in rag.named


def test_it_is_a_model_like_any_other_and_none_is_trained_from_it() -> None:
    assert declaration_of("lab-reader").trained == "reader"
    assert identify("lab-reader").fingerprint not in ("", identify("lab").fingerprint)
    trained = TrainableReader.of("lab-train:choice", "out", method="iekr")
    assert trained.method.values["reader"] is None
