"""Every recipe from end to end with the laboratory's model, on two questions of each data set; what is learnt is shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.reproduce import recipe
from gnothi.reproduce.parts import Job
from gnothi.reproduce.work import carry_out

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trained")


@pytest.mark.parametrize("name", [name for name in recipe.names() if "/" in name])
def test_rehearsal(name: str, trained: Path, tmp_path: Path) -> None:
    found = recipe.read(name)
    for extra in found.extras:
        pytest.importorskip({"training": "peft", "dense": "sentence_transformers"}[extra], reason=f"needs gnothi[{extra}]")
    outcome = carry_out(Job(recipe=found, out=tmp_path, rehearse=True, limit=2, trained=trained))
    assert outcome.failures == 0
    assert [one.name for one in outcome.data] == [source.name for source in found.data]
    for one in outcome.data:
        rows = [row.label for row in found.study.variants if one.name not in found.rows[row.label].without]
        assert [row.label for row in one.rows] == rows
        assert all(cell.ours is not None for row in one.rows for cell in row.cells)
