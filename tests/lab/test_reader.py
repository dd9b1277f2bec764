"""The shipped reader: IEKR by its defaults is better with it than the model's own memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import gnothi
from gnothi.runs.folder import read_rows
from gnothi.stats.paired import paired_test


@pytest.mark.slow
def test_iekr_by_its_defaults_beats_memory(tmp_path: Path) -> None:
    gnothi.evaluate("lab:choice", ["direct", "iekr"], tmp_path, limit=80, seed=14)
    right = {row.key: row.metrics["em"] for row in read_rows(tmp_path)}
    names = sorted({question for _, question in right})
    found = paired_test([right["iekr", name] for name in names], [right["direct", name] for name in names])
    assert len(names) == 80
    assert found.difference > 0.1
    assert found.p < 0.001
