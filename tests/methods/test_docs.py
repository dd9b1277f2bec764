"""Every method stands in the guide, and every setting beside the number of its paper."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

from gnothi import methods
from gnothi.methods.steps.reader import ReaderSettings
from gnothi.methods.steps.settings import Measuring

ROOT = Path(__file__).parents[2]
READER = {item.name for item in fields(ReaderSettings)}  # shared; they stand beside those of skill_rag


@pytest.mark.parametrize("name", methods.names())
def test_every_method_is_in_the_guide(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "how-to" / "choose-a-method.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("seakr", {"reason", "query"}),
        ("keqa", set()),
        ("skill_rag", set()),
        ("filco", READER),
        ("crag", READER),
        ("skr", READER),
        ("iekr", {"retriever"}),
        ("refeed", READER),
        ("gkp", READER),
        ("self_consistency", set()),
        ("flare", set()),
        ("react", set()),
        ("search_r1", set()),
        ("searchain", set()),
        ("rowen", READER),
        ("slimplm", READER),
        ("self_rag", READER),
        ("dragin", set()),
        ("adaptive_rag", READER),
    ],
)
def test_every_setting_stands_beside_the_papers_number(name: str, left_out: set[str]) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "papers").glob("*.md"))
    ours = (
        {item.name for item in fields(cast("Any", methods.spec(name).method))} - {"model", "retriever", "measuring"} - left_out
    )
    ours |= {item.name for item in fields(Measuring)} - {"probe"} if name == "seakr" else set()
    assert not {one for one in ours if not re.search(rf"`[^`]*\b{one}\b[^`]*`", text)}
