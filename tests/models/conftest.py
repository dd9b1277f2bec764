"""Tiny models shared by the tests of this folder."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.tiny import build_model, build_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return build_tokenizer()


@pytest.fixture(scope="session")
def llama() -> Any:
    return build_model("llama")
