"""What the lab model could do as training went on, drawn from curve.jsonl files: curves.py [CURVE ...] --out FILE.svg

Without arguments it draws the curve that comes with the shipped model. A second curve (of a training with
``--set prepared=false``, say) is drawn dashed beside the first.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

SHIPPED = Path(__file__).parent.parent / "src" / "gnothi" / "lab" / "model" / "curve.jsonl"
SHOWN = (
    "recall often",
    "recall seldom",
    "recall never",
    "two hops from memory",
    "read 1 passage",
    "read 3 passages",
    "two hops, 2 passages",
    "comparison, 2 passages",
)


def draw(curves: list[Path], out: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(11, 4.6), sharex=True, sharey=True, layout="constrained")
    for number, path in enumerate(curves):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        tokens = [row["tokens"] / 1e6 for row in rows]
        for axis, name in zip(axes.flat, SHOWN, strict=True):
            axis.plot(tokens, [row[name] for row in rows], linestyle=("-", "--", ":")[number % 3], label=path.parent.name)
            axis.set_title(name, fontsize=9)
            axis.set_ylim(0, 1.02)
            axis.grid(alpha=0.3)
    figure.supxlabel("training tokens (millions)", fontsize=9)
    figure.supylabel("replies right as a whole", fontsize=9)
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("curves", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=Path("lab-curves.svg"))
    given = parser.parse_args()
    draw(given.curves or [SHIPPED], given.out)
