"""The drawings of the concept pages: ``python docs/pictures/draw.py`` writes them beside this file as SVG."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

INK, PAPER, SOFT, SURE, UNSURE = "#1f2937", "#ffffff", "#e5e7eb", "#1b7a6e", "#c2410c"


class Drawing:
    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" '
            f'font-size="15" role="img" aria-label="{escape(title)}">',
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0 L10 5 L0 10 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
        ]

    def text(self, x: float, y: float, text: str, anchor: str = "middle", colour: str = INK, size: int = 15) -> None:
        for row, line in enumerate(text.split("\n")):
            place = f'x="{x:g}" y="{y + row * size * 1.25:g}" text-anchor="{anchor}"'
            self.parts.append(f'<text {place} fill="{colour}" font-size="{size}">{escape(line)}</text>')

    def box(
        self, x: float, y: float, width: float, height: float, text: str, fill: str = SOFT, colour: str = INK, size: int = 15
    ) -> None:
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}"/>')
        lines = text.count("\n")
        self.text(x + width / 2, y + height / 2 + 5 - lines * size * 0.625, text, colour=colour, size=size)

    def arrow(self, *points: tuple[float, float]) -> None:
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{INK}" stroke-width="1.5" marker-end="url(#tip)"/>')

    def line(self, points: list[tuple[float, float]], colour: str = INK, width: float = 2, dash: str = "") -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        stroke = f'stroke="{colour}" stroke-width="{width:g}" stroke-dasharray="{dash}"'
        self.parts.append(f'<polyline points="{path}" fill="none" {stroke}/>')

    def bar(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" fill="{fill}"/>')

    def dot(self, x: float, y: float, colour: str = INK, radius: float = 6) -> None:
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{colour}"/>')

    def svg(self) -> str:
        return "\n".join([*self.parts, "</svg>"]) + "\n"

    def write(self, name: str) -> None:
        (Path(__file__).parent / f"{name}.svg").write_text(self.svg(), encoding="utf-8")


def answering() -> None:
    d = Drawing(860, 270, "How a question is answered")
    d.box(20, 40, 110, 60, "question")
    d.box(180, 40, 130, 60, "draft the next\nsentence")
    d.box(360, 40, 140, 60, "gate: uncertain?", UNSURE, PAPER)
    d.box(560, 40, 130, 60, "keep the draft", SURE, PAPER)
    d.box(360, 170, 140, 60, "search with\na query")
    d.box(560, 170, 130, 60, "filter: keep what\nmakes it sure")
    d.box(740, 105, 105, 60, "answer,\nevidence")
    d.arrow((130, 70), (178, 70))
    d.arrow((310, 70), (358, 70))
    d.arrow((500, 70), (558, 70))
    d.text(529, 62, "no")
    d.arrow((430, 100), (430, 168))
    d.text(448, 140, "yes")
    d.arrow((500, 200), (558, 200))
    d.arrow((625, 168), (625, 102))
    d.text(632, 140, "rewrite", anchor="start")
    d.arrow((690, 80), (738, 120))
    d.arrow((625, 38), (625, 16), (245, 16), (245, 38))
    d.text(435, 31, "not concluded: go on", size=13)
    d.write("answering")


def gate() -> None:
    d = Drawing(860, 260, "Scores of what a model knows and does not know, and a threshold")

    def hill(centre: float, spread: float, height: float) -> list[tuple[float, float]]:
        return [(x, 200 - height * math.exp(-(((x - centre) / spread) ** 2))) for x in range(60, 821, 8)]

    d.line(hill(270, 95, 140), SURE, 3)
    d.line(hill(560, 120, 110), UNSURE, 3)
    d.line([(60, 200), (820, 200)])
    d.line([(415, 30), (415, 200)], INK, 2, "6 4")
    d.text(415, 22, "threshold")
    d.text(230, 50, "questions it answers rightly", colour=SURE)
    d.text(640, 75, "questions it answers wrongly", colour=UNSURE)
    d.text(240, 232, "below: trust memory")
    d.text(610, 232, "above: look for evidence")
    d.text(820, 252, "uncertainty, higher is less certain", anchor="end", size=12)
    d.write("gate")


def ends() -> None:
    d = Drawing(860, 340, "Never, always, a gate between, and the oracle")
    d.line([(90, 30), (90, 290), (810, 290)])
    curve = [(130 + 640 * share, 225 - 40 * share - 330 * share * (1 - share) ** 1.6) for share in [i / 40 for i in range(41)]]
    d.line(curve, SURE, 3)
    d.line([curve[0], curve[-1]], INK, 1.5, "4 4")
    best = min(curve, key=lambda point: point[1])
    d.line([(90, 60), (810, 60)], UNSURE, 2, "8 5")
    d.dot(*curve[0])
    d.dot(*curve[-1])
    d.dot(*best, SURE)
    d.text(130, 252, "never")
    d.text(770, 212, "always")
    d.text(100, 52, "oracle: the better of the two answers, question by question", anchor="start", colour=UNSURE)
    d.text(best[0] + 12, best[1] - 10, "the gate, at its best threshold", anchor="start", colour=SURE)
    d.text(430, 245, "no signal: questions are sent at random", anchor="start", size=13)
    d.text(450, 318, "share of questions that retrieve")
    d.parts.append(f'<text transform="translate(60 165) rotate(-90)" text-anchor="middle" fill="{INK}">accuracy</text>')
    d.write("never-always-oracle")


def run() -> None:
    d = Drawing(860, 250, "A run on disk")
    d.box(20, 80, 150, 70, "plan: every\nsetting, resolved")
    d.box(230, 80, 150, 70, "questions,\nmany at once")
    d.box(450, 20, 190, 44, "config.toml, at the start", size=14)
    d.box(450, 78, 190, 44, "rows.jsonl, as finished", size=14)
    d.box(450, 136, 190, 44, "events.jsonl, as finished", size=14)
    d.box(450, 194, 190, 44, "summary.json, at the end", size=14)
    d.box(710, 80, 130, 70, "report, gates,\ncalibrate")
    d.arrow((170, 115), (228, 115))
    for y in (42, 100, 158, 216):
        d.arrow((380, 115), (448, y))
        d.arrow((640, y), (708, 115))
    d.arrow((545, 240), (545, 246), (95, 246), (95, 152))
    d.text(270, 236, "the same command goes on with what is missing", size=13)
    d.write("run")


def layers() -> None:
    d = Drawing(860, 528, "Packages in layers; imports point downwards")
    rows = [
        ("cli",),
        ("serving", "adapters"),
        ("testing: fakes and conformance suites",),
        ("reproduce: the papers' tables, ablations",),
        ("training",),
        ("session: names become resources, one plan",),
        ("report", "calibration", "runs"),
        ("lab", "metrics"),
        ("methods: one file per paper",),
        ("filtering", "graph"),
        ("models", "signals", "retrieval", "datasets"),
        ("stats",),
        ("types", "protocols", "events", "errors", "config"),
    ]
    for number, row in enumerate(rows):
        width = (760 - 10 * (len(row) - 1)) / len(row)
        for place, name in enumerate(row):
            d.box(70 + place * (width + 10), 12 + number * 38, width, 32, name, SOFT if number % 2 else "#dbeafe")
    d.arrow((40, 15), (40, 500))
    d.text(430, 520, "imports point downwards", size=13)
    d.write("layers")


if __name__ == "__main__":
    for drawing in (answering, gate, ends, run, layers):
        drawing()
