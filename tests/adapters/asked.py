"""What the tests of all adapters ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gnothi
from gnothi.testing.model import Scripted
from tests.command_line import script

DIRECTED = "Who directed The Amber Harbour?"
"""The laboratory's model knows who starred in it, and not who directed it."""
STARRED = "Who starred in The Hollow Letter?"


@pytest.fixture(scope="module")
def rag() -> Iterator[gnothi.Rag]:
    """Over a scripted model: sure of the known book, unsure of all else without its passage."""
    with gnothi.open("seakr", model=Scripted(script, name="lab", thresholds={"gram": -6.0})) as opened:
        yield opened


@pytest.fixture(scope="module")
def lab() -> Iterator[gnothi.Rag]:
    """The laboratory itself."""
    pytest.importorskip("torch", reason="the laboratory's model needs the extra local")
    with gnothi.open("seakr", model="lab", index="lab") as opened:
        yield opened
