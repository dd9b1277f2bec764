"""The pictures of the result pages, drawn from the tables of these pages: ``python docs/pictures/results.py`` writes them
beside this file as SVG."""

from __future__ import annotations

import re
from pathlib import Path

from draw import INK, PAPER, SOFT, SURE, UNSURE, Drawing

PALE = "#8b93a1"

RESULTS = Path(__file__).parents[1] / "results"


def when_gating_pays() -> Drawing:
    """Exact match by library; shown are the methods whose difference the page is about."""
    head, rows = table("when-gating-pays", "method")
    colours = {"chain of thought": INK, "retrieve once": INK, "IRCoT, K=2": INK, "FLARE": SURE, "SeaKR": SURE}
    shown = {row[0].split(" (")[0].strip("*"): row for row in rows}
    best = shown["oracle of chain of thought and IRCoT, K=2"]
    d = Drawing(860, 250, "Exact match by method and library")
    for number, name in enumerate(colours):
        d.text(150, 67 + 32 * number, name, anchor="end", size=14)
    for place, library in enumerate(head[1:4], start=1):
        left, scale = 165 + 232 * (place - 1), 180
        d.text(left, 32, library, anchor="start")
        for number, (name, colour) in enumerate(colours.items()):
            value, end = shown[name][place].split(" ")[0], scale * first(shown[name][place])
            d.bar(left, 52 + 32 * number, end, 22, colour)
            d.text(left + end - 6, 68 + 32 * number, value, anchor="end", colour=PAPER, size=13)
        oracle = left + scale * first(best[place])
        d.line([(oracle, 44), (oracle, 210)], UNSURE, 2, "6 4")
    d.text(165, 235, "green: with a gate", anchor="start", colour=SURE, size=13)
    d.text(
        305,
        235,
        "dashed: the better of chain of thought and IRCoT, question by question",
        anchor="start",
        colour=UNSURE,
        size=13,
    )
    return d


def real_models() -> Drawing:
    """Accuracy on PopQA by each method's defaults, with its interval, and tokens."""
    head, rows = table("real-models", "method")
    accuracy, tokens = len(head) - 2, len(head) - 1
    shown = [row for row in rows if row[accuracy]]
    left, scale, height = 250, 850, 19
    d = Drawing(860, 60 + height * len(shown), "Accuracy of each method on PopQA, with its 95% interval")
    d.text(left, 24, "accuracy on PopQA, 95% interval", anchor="start", size=13)
    d.text(840, 24, "tokens", anchor="end", size=13)
    bottom = 40 + height * len(shown)
    for share in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        d.line([(left + scale * share, 34), (left + scale * share, bottom - 6)], SOFT, 1)
        d.text(left + scale * share, bottom + 8, f"{share:.1f}", size=12)
    for number, row in enumerate(shown):
        y = 48 + height * number
        name = row[0].replace("`", "")
        colour = {"direct": UNSURE, "rag": SURE}.get(name, INK)
        middle, low, high = (left + scale * value for value in figures(row[accuracy])[:3])
        d.text(left - 14, y + 4, name, anchor="end", size=13, colour=colour)
        d.line([(low, y), (high, y)], colour, 2)
        d.dot(middle, y, colour, 4)
        d.text(840, y + 4, row[tokens], anchor="end", size=12)
    return d


def performance() -> Drawing:
    """What twenty samples with their states cost, in greedy answers."""
    _, rows = table("performance", "prompt")
    names = {"Gnothi": 1, "the library's own sampling": 3, "LM-Polygraph": 4}
    d = Drawing(860, 262, "Cost of twenty samples with hidden states, in greedy answers")
    for group, row in enumerate(rows):
        top = 20 + 112 * group
        d.text(20, top + 14, f"prompt of {row[0].split(',')[0]}", anchor="start")
        for number, (name, column) in enumerate(names.items()):
            y, value = top + 24 + 28 * number, first(row[column])
            d.text(215, y + 15, name, anchor="end", size=13)
            d.bar(225, y, 18 * value, 20, SURE if number == 0 else INK)
            d.text(231 + 18 * value, y + 15, row[column].split(" ")[0], anchor="start", size=13)
    d.line([(243, 38), (243, 240)], UNSURE, 2, "6 4")
    d.text(250, 252, "dashed: one greedy answer", anchor="start", colour=UNSURE, size=13)
    return d


def taught() -> Drawing:
    """Right answers by how often a fact was taught, and by library: memory, always searching, the gate, the better of both."""
    head, rows = table("taught", "library")
    lines = {(row[0], row[1]): [first(cell) for cell in row[2:]] for row in rows}
    never = next(values for (_, name), values in lines.items() if name == "never")
    colours = {"never": PALE, "always": UNSURE, "gate": SURE, "oracle": INK}
    kinds = list(dict.fromkeys(row[0] for row in rows if row[0]))
    times = head[2 : head.index("all")]
    columns = {time: ("complete", place) for place, time in enumerate(times)}
    columns |= {kind: (kind, head.index("all") - 2) for kind in kinds}
    d = Drawing(860, 290, "Right answers by how often a fact was taught and by library")
    for group, (label, (kind, place)) in enumerate(columns.items()):
        left = 20 + 102 * group + (24 if group >= len(times) else 0)
        for number, (name, colour) in enumerate(colours.items()):
            value = never[place] if name == "never" else lines[kind, name][place]
            d.bar(left + 21 * number, 210 - 180 * value, 19, 180 * value, colour)
            d.text(left + 21 * number + 9, 206 - 180 * value, f"{value:.2f}".lstrip("0"), size=10)
        d.text(left + 42, 228, label, size=13)
    d.text(210, 250, "taught in each epoch, complete library", size=13)
    d.text(640, 250, "library, all questions", size=13)
    for number, (name, colour) in enumerate(colours.items()):
        d.bar(250 + 100 * number, 264, 14, 14, colour)
        d.text(270 + 100 * number, 276, name, anchor="start", size=13)
    return d


def table(page: str, column: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the page's first table whose first column has that name."""
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    lines = text[text.index(f"| {column} |") :].partition("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return head, rows


def first(cell: str) -> float:
    return figures(cell)[0]


def figures(cell: str) -> list[float]:
    return [float(one) for one in re.findall(r"\d*\.?\d+", cell)]


DRAWINGS = {"when-gating-pays": when_gating_pays, "real-models": real_models, "performance": performance, "taught": taught}

if __name__ == "__main__":
    for name, drawing in DRAWINGS.items():
        drawing().write(name)
