"""Trimmed transcripts of runs, for docs/results/real-transcripts.md: a section a method, its questions spread over the run.

    python -m tools.transcripts RUN [RUN ...] --page docs/results/real-transcripts.md

A section that is there keeps its first paragraph, which says what was seen and mended; the others stay as they are.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gnothi.events import Event, ModelCall, read
from gnothi.report.words import Line, Narrator
from gnothi.runs.folder import read_events, read_rows
from gnothi.runs.rows import Row, group

QUESTIONS, WIDTH, LINES = 1, 140, 9
HEAD = "# Real transcripts\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--page", type=Path, required=True)
    options = parser.parse_args()
    head, sections = parts(options.page.read_text("utf-8") if options.page.is_file() else HEAD)
    for run in options.runs:
        for method, rows in group(read_rows(run)).items():
            shown = rows[:: max(1, len(rows) // QUESTIONS)][:QUESTIONS]
            events = read_events(run, [(method, row.question_id) for row in shown])
            told = [transcript(row, list(map(read, events[method, row.question_id]))) for row in shown]
            sections[method] = "\n\n".join([introduction(sections.get(method, "")), *told]).strip()
    text = "\n\n".join([head.strip(), *(f"## {method}\n\n{sections[method]}" for method in sorted(sections))])
    options.page.write_text(text + "\n", "utf-8")
    return 0


def parts(page: str) -> tuple[str, dict[str, str]]:
    """What stands before the first section, and the sections by their headings."""
    head, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    return head, {one.partition("\n")[0].strip(): one.partition("\n")[2].strip() for one in sections}


def introduction(section: str) -> str:
    """What a section says before its first question, which is in bold."""
    return section.partition("**")[0].strip()


def transcript(row: Row, events: Sequence[Event]) -> str:
    """A question with its gold answers, what happened, and the answer."""
    if row.method == "react":  # its turns tell all that happened
        lines = [cut(line) for line in row.rationale.splitlines()]
    else:
        lines = [*told(events), *([f"{'chain':<9} {cut(row.rationale)}"] if row.rationale else [])]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 3], "...", *lines[-2:]]
    verdict = "right" if row.metrics.get("accuracy") else "wrong"
    lines.append(f"{'answer':<9} {cut(row.answer or '(none)')} ({verdict})")
    gold = ", ".join(row.gold[:2])
    return f"**{row.question}** ({gold})\n\n" + "\n".join(["```text", *lines, "```"])


def told(events: Sequence[Event]) -> Iterator[str]:
    """The events in words: what has a label, and the first two that were chosen among others."""
    narrator = Narrator()
    for event in events:
        if isinstance(event, ModelCall):
            continue
        lines = narrator.tell(event)
        chosen = [line for line in lines if not line.label and line.lead.strip().startswith("*")]
        yield from map(said, [*(line for line in lines if line.label), *chosen[:2]])


def said(line: Line) -> str:
    label = f"{line.label} {line.step}" if line.step else line.label
    return f"{label:<9} {cut(line.lead.strip() + ' ' + line.text)}".rstrip()


def cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 4].rstrip()} ..."


if __name__ == "__main__":
    sys.exit(main())
