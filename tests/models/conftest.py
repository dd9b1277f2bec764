"""Tiny models shared by the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gnothi.models.engine import verdicts
from tests.models.tiny import build_model, build_tokenizer, settled


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return build_tokenizer()


@pytest.fixture(scope="session")
def llama() -> Any:
    return build_model("llama")


@pytest.fixture
def one_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the same tiny network a hundred times waits for one trial of it."""
    monkeypatch.setattr(verdicts, "settle", settled)


@pytest.fixture
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No keys, addresses or proxies of the machine, a cache of the test's own, and no waits between tries."""
    proxies = [f"{kind}_PROXY" for kind in ("HTTP", "HTTPS", "ALL")]
    keys = [f"{name}_API_KEY" for name in ("OPENAI", "TEI", "COHERE", "JINA", "RERANK")]
    for name in (*keys, "OPENAI_BASE_URL", *proxies, *map(str.lower, proxies)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("gnothi.retrying.FIRST_WAIT", 0.002)
