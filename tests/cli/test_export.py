"""``gnothi export``, and what it says of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import Run
from tests.messages import complained
from tests.report.export.made import made


async def test_a_run_for_other_tools(gnothi: Run, tmp_path: Path) -> None:
    run, out = str(await made(tmp_path / "run")), tmp_path / "ragas.jsonl"
    code, said, warned = gnothi("export", run, "--to", "ragas", "--method", "scripted", "--out", str(out))
    assert (code, said) == (0, f"{out}: 6 answers\n")
    assert "1 question failed and are left out" in warned
    assert "only the id was recorded" in warned
    assert out.read_text().count("\n") == 6
    complained(gnothi("export", run, "--to", "inspect", "--out", str(tmp_path / "x.eval")))


def test_gates_of_a_table(gnothi: Run, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    rows = [f"{n % 2},{int(n % 3 > 0)},{1 - n % 2 + n / 1000}" for n in range(60)]
    path.write_text("\n".join(["closed,open,doubt", *rows]))
    code, said, _ = gnothi(
        "calibrate", "--replay", str(path), "--never", "closed", "--always", "open", "--threshold", "doubt=0.5", "--json"
    )
    (found,) = json.loads(said)
    assert code == 0
    assert found["signals"]["doubt"]["auroc"] == 1
    assert found["signals"]["doubt"]["replayed"]["retrieval_rate"] == 0.5
    assert "as recorded" in found["metric"]
