"""Recipes and what they came to: as Markdown, as JSON and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.config import as_text
from gnothi.errors import counted
from gnothi.report.terminal.console import clean, definitions, paragraph
from gnothi.reproduce import tables
from gnothi.reproduce.estimate import rent
from gnothi.reproduce.outcome import Outcome
from gnothi.reproduce.recipe import On, Recipe, papers

if TYPE_CHECKING:
    from rich.console import Console

    from gnothi.reproduce.needs import Need
    from gnothi.reproduce.study import Variant
    from gnothi.reproduce.work import Outlook

_VERSIONS = "models and libraries may have other versions than the paper's"
_READING = (
    "Shares lie between 0 and 1. In brackets are 95% intervals. Ours less paper has a wider one than ours alone, for the "
    "paper's figure is of a sample, too. p is of a paired test: whether the row differs from the one named in the head, on our "
    "questions."
)
REHEARSAL = "A rehearsal: another model and other questions than the paper's. It shows that every step runs, and nothing else."


# --- what there is -----------------------------------------------------------------------------------------------------


def listing(recipe: Recipe) -> dict[str, Any]:
    """For ``--json``: the recipe with what it needs and the paper's figures as printed."""
    rows = [
        {
            "label": row.label,
            "group": row.group,
            "method": row.method,
            "model": row.model,
            "settings": dict(row.settings),
            "needs": dict(row.needs),
            "shift": row.shift,
            "note": row.note,
            "folder": row.folder,
            "without": recipe.rows[row.label].without,
            "paper": [asdict(figure) for figure in row.paper],
        }
        for row in recipe.study.variants
    ]
    return {
        "recipe": recipe.name,
        "covers": recipe.covers,
        "title": recipe.study.title,
        "source": recipe.study.source,
        "note": " ".join(recipe.study.note.split()),
        "dataset": None if recipe.data else recipe.study.dataset,
        "data": [asdict(one) for one in recipe.data],
        "questions": recipe.questions,
        "corpus": recipe.corpus or None,
        "graph": recipe.study.graph,
        "model": recipe.study.model,
        "settings": dict(recipe.study.settings),
        "train": [asdict(one) for one in recipe.trainings],
        "rows": rows,
        "percent": recipe.percent,
        "full": recipe.study.full,
        "metric": recipe.study.metric,
        "extras": recipe.extras,
    }


def listed(recipes: list[Recipe]) -> Iterator[str]:
    """A line for each element, those without a recipe with the reason."""
    for name, paper in papers().items():
        yield str(paper["title"])
        yield from definitions([(one.name, _element(one)) for one in recipes if one.paper == name])
        reasons = [(element, f"no recipe: {reason}") for element, reason in paper["left_out"].items()]
        yield from definitions([one for one in reasons if one[1] not in ("no recipe: a drawing", "no recipe: a prompt")])
        yield ""
    yield "Ablations, on the laboratory's questions or yours"
    yield from definitions([(one.name, _titled(one)) for one in recipes if not one.data])
    yield ""


def _element(recipe: Recipe) -> str:
    """With the whole bill."""
    whole = anywhere(recipe)
    return recipe.study.title + (f" ({' and '.join(recipe.covers)}): {bill(whole)}" if whole else "")


def anywhere(recipe: Recipe) -> Outlook | None:
    """All that a table of a paper takes, wherever it is run."""
    from gnothi.reproduce.parts import Job
    from gnothi.reproduce.work import outlook

    return outlook(Job(recipe=recipe, out=Path())) if recipe.data else None


def _titled(recipe: Recipe) -> str:
    source = f" [{recipe.study.source}]" if recipe.study.source else ""
    return f"{recipe.study.title}{source}" + (f"; needs {_extras(recipe)}" if recipe.extras else "")


def _extras(recipe: Recipe) -> str:
    return f"gnothi[{','.join(recipe.extras)}]"


def _variants(recipe: Recipe) -> Iterator[str]:
    """An ablation with everything about each of its rows."""
    study = recipe.study
    about = [
        ("source", study.source),
        ("install", f"pip install '{_extras(recipe)}'" if recipe.extras else ""),
        ("data set", study.dataset),
        ("all set", " ".join(f"{key}={as_text(value)}" for key, value in study.settings.items())),
        ("note", study.note),
    ]
    yield clean(f"{recipe.name}: {study.title}")
    yield from definitions([one for one in about if one[1]])
    yield ""
    group = ""
    for variant in study.variants:
        if variant.group != group:
            group = variant.group
            yield f"  {clean(group)}" if group else ""
        yield from definitions([(f"{'*' if variant.label == study.full else ' '} {variant.label}", _variant(variant))])
    yield "\n* the full method, with which the others are compared"


def _variant(variant: Variant) -> str:
    shift = f" threshold{variant.shift:+g}" if variant.shift else ""
    settings = " ".join(f"{key}={as_text(value)}" for key, value in variant.settings.items()) + shift
    resources = " ".join(f"--{key} {getattr(variant, key)}" for key in ("model", "index", "graph") if getattr(variant, key))
    needs = "; ".join(f"needs {key}: {how}" for key, how in variant.needs.items())
    return "; ".join(part for part in (f"{variant.method} {settings} {resources}".strip(), needs, variant.note) if part)


def described(recipe: Recipe, outlook: Outlook | None) -> Iterator[str]:
    """One recipe: what it holds, what it needs, what is lacking, what it takes."""
    study = recipe.study
    if not recipe.data:
        yield from _variants(recipe)
        return
    how = f"{recipe.questions} of each at random" if recipe.questions else "all"
    about = [
        ("covers", ", ".join(recipe.covers)),
        ("source", study.source),
        ("rows", ", ".join(row.label for row in study.variants)),
        ("data sets", "; ".join(one.title for one in recipe.data)),
        ("questions", how),
        ("model", ", ".join(dict.fromkeys(recipe.on.get(one.name, On()).model or study.model or "lab" for one in recipe.data))),
        ("learnt first", ", ".join(f"{one.name} (gnothi train {one.kind})" for one in recipe.trainings)),
        ("note", " ".join(study.note.split())),
    ]
    yield f"{recipe.name}: {study.title}"
    yield from definitions([one for one in about if one[1]])
    if outlook is None:
        return
    if anywhere := all(not need.here and not need.lacking for need in outlook.needs):
        yield "\nIt needs"
        yield from definitions([(need.title, _got(need)) for need in outlook.needs])
    if outlook.lacking:
        yield "\nLacking"
        yield from definitions(
            [(need.title, f"{', '.join(need.lacking)}. Get it from {_got(need)}") for need in outlook.lacking]
        )
    later = [need for need in outlook.needs if not need.here and not need.lacking]
    if later and not anywhere:
        yield "\nDownloaded when it is first opened"
        yield from definitions([(need.title, _got(need)) for need in later])
    for need in outlook.needs:
        if need.warning:
            yield f"warning: {need.warning}"
    yield f"\n{bill(outlook)}"
    if unsure := [need.title for need in outlook.needs if need.unverified]:
        yield f"Not verified, for sizes, licences or prices are from memory: {'; '.join(unsure)}."
    if outlook.estimate:
        yield f"{'' if outlook.lacking or anywhere else 'No file is lacking. '}{outlook.estimate.words}"


def _got(need: Need) -> str:
    """Where it comes from, how large it is and under which licence."""
    parts = [f"{need.home}: {need.get.rstrip('.')}." if need.home else need.get]
    parts += [f"About {need.gigabytes:g} GB."] if need.gigabytes else []
    parts += [f"{need.disk:g} GB more on disk for what is built of it."] if need.disk else []
    parts += [f"Licence: {need.licence}{', gated: accept it on its page first' if need.gated else ''}."] if need.licence else []
    parts += ["Not verified."] if need.unverified else []
    return " ".join(parts)


def bill(outlook: Outlook) -> str:
    """In one line: downloads, disk, hours and money, all as estimated."""
    cost = outlook.estimate
    amounts = [f"about {outlook.gigabytes:.0f} GB to download", f"{outlook.disk:.0f} GB on disk"]
    if cost and cost.hours:
        hours = (
            f"{cost.hours:,.0f} GPU hours"
            if cost.hours >= 1.5
            else "about 1 GPU hour"
            if cost.hours >= 0.5
            else "less than 1 GPU hour"
        )
        learning = f"; {cost.learning:,.0f} of them learning" if cost.learning and cost.learning >= 0.5 else ""
        amounts.append(f"{hours} ({rent(cost.hours)}{learning})")
    if cost and cost.dollars != 0:
        amounts.append("an API of unknown price" if cost.dollars is None else f"${cost.dollars:,.0f} of API")
    return ", ".join(amounts)


# --- what came out -------------------------------------------------------------------------------------------------------


def document(outcome: Outcome) -> dict[str, Any]:
    """For ``--json``."""
    whole = asdict(outcome)
    for one, own in zip(whole["data"], outcome.data, strict=True):
        for row, mine in zip(one["rows"], own.rows, strict=True):
            row["cells"] = [
                {**cell, "inside": of.inside, "difference": of.difference}
                for cell, of in zip(row["cells"], mine.cells, strict=True)
            ]
    return whole | {"inside": outcome.inside, "expected": outcome.expected}


def conclusion(outcome: Outcome) -> str:
    """What was reproduced, what was not, and why it may differ; then how many figures lie where they should."""
    if outcome.rehearsal:
        return REHEARSAL
    rows = len({row.label for one in outcome.data for row in one.rows})
    sizes = ", ".join(f"{one.questions:,} of {one.title}" for one in outcome.data)
    sentences = [
        f"Reproduced: {counted(rows, 'row')} of {' and '.join(outcome.covers) or outcome.recipe}, on questions: {sizes}.",
        f"Not reproduced: {', '.join(outcome.missing) or 'nothing of it'}.",
        f"It may differ because {'; '.join((*outcome.differs, _VERSIONS))}.",
    ]
    inside, known = outcome.inside
    if known:
        figures = counted(known, "figure")
        sentences.append(
            f"{inside} of {figures} of the paper lie in the 95% intervals of ours; of a perfect replication about "
            f"{outcome.expected:.0f} ({outcome.expected / known:.1%}) would, for the paper's are of samples, too."
        )
    return " ".join(sentences)


def markdown(outcome: Outcome) -> list[str]:
    lines = [f"{outcome.title} ({outcome.source}); {', '.join(outcome.models)}.", "", _READING, ""]
    for one in outcome.data:
        lines += [f"**{one.title}**: {counted(one.questions, 'question')}", "", *tables.outcome(one).markdown(), ""]
    return [*lines, conclusion(outcome), *(["", outcome.note] if outcome.note else [])]


def show(console: Console, outcome: Outcome) -> None:
    paragraph(console, f"{outcome.title} ({outcome.source})", style="bold")
    paragraph(
        console,
        f"{', '.join(outcome.models)}; in brackets the paper's figure, below 95% intervals of ours and of the difference",
    )
    for one in outcome.data:
        paragraph(console, f"{one.title}: {counted(one.questions, 'question')}", style="italic")
        tables.outcome(one).show(console)
        for warning in one.warnings:
            paragraph(console, f"warning: {warning}", style="yellow")
    for text in (conclusion(outcome), f"note: {outcome.note}" if outcome.note else ""):
        if text:
            paragraph(console, text)
