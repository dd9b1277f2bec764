"""Recipes and what they came to: as Markdown, as JSON and on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gnothi.config import as_text
from gnothi.report.numbers import counted
from gnothi.report.terminal.console import clean, definitions, paragraph
from gnothi.reproduce import resources, tables
from gnothi.reproduce.outcome import Outcome
from gnothi.reproduce.recipe import Recipe, papers

if TYPE_CHECKING:
    from rich.console import Console

    from gnothi.reproduce.needs import Need
    from gnothi.reproduce.study import Variant
    from gnothi.reproduce.work import Outlook

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
        mine = [
            (one.name, f"{one.study.title} ({' and '.join(one.covers)})" if one.covers else one.study.title)
            for one in recipes
            if one.paper == name
        ]
        yield from definitions(mine)
        reasons = [(element, f"no recipe: {reason}") for element, reason in paper["left_out"].items()]
        yield from definitions([one for one in reasons if one[1] not in ("no recipe: a drawing", "no recipe: a prompt")])
        yield ""
    yield "Ablations, on the laboratory's questions or yours"
    yield from definitions([(one.name, _titled(one)) for one in recipes if not one.data])
    yield ""


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
        ("model", study.model or "lab"),
        ("learnt first", ", ".join(f"{one.name} (gnothi train {one.kind})" for one in recipe.trainings)),
        ("note", " ".join(study.note.split())),
    ]
    yield f"{recipe.name}: {study.title}"
    yield from definitions([one for one in about if one[1]])
    if outlook is None:
        sources = [*recipe.data, *_others(recipe)]
        yield "\nIt needs"
        yield from definitions([(one.title, f"{one.home}: {one.get}. Licence: {one.licence}.") for one in sources])
        return
    if outlook.lacking:
        yield "\nLacking"
        yield from definitions([(need.title, _lacking(need)) for need in outlook.lacking])
    for need in outlook.needs:
        if need.warning:
            yield f"warning: {need.warning}"
    if outlook.estimate:
        yield f"\nNothing is lacking. {outlook.estimate.words}"


def _others(recipe: Recipe) -> list[resources.Resource]:
    named = [("corpus", recipe.corpus), ("graph", recipe.study.graph or "")]
    named += [
        ("model", one) for one in dict.fromkeys([recipe.study.model, *(row.model for row in recipe.study.variants)]) if one
    ]
    return [resources.find(kind, name) for kind, name in named if name]


def _lacking(need: Need) -> str:
    where = f" from {need.home}" if need.home else ""
    licence = f" Licence: {need.licence}." if need.licence else ""
    return f"{', '.join(need.lacking)}. Get it{where}: {need.get.rstrip('.')}.{licence}"


# --- what came out -------------------------------------------------------------------------------------------------------


def document(found: Outcome) -> dict[str, Any]:
    """For ``--json``."""
    whole = asdict(found)
    for one, own in zip(whole["data"], found.data, strict=True):
        for row, mine in zip(one["rows"], own.rows, strict=True):
            row["cells"] = [{**cell, "inside": of.inside} for cell, of in zip(row["cells"], mine.cells, strict=True)]
    return whole


def conclusion(found: Outcome) -> str:
    if found.rehearsal:
        return REHEARSAL
    inside, known = found.inside
    return f"{inside} of {counted(known, 'figure')} of the paper lie in the 95 % intervals of ours." if known else ""


def markdown(found: Outcome) -> list[str]:
    lines = [f"{found.title} ({found.source}); {', '.join(found.models)}.", ""]
    for one in found.data:
        lines += [f"**{one.title}**: {counted(one.questions, 'question')}", "", *tables.outcome(one).markdown(), ""]
    return [*lines, *(text for text in (conclusion(found), found.note) if text)]


def show(console: Console, found: Outcome) -> None:
    paragraph(console, f"{found.title} ({found.source})", style="bold")
    paragraph(
        console, f"{', '.join(found.models)}; under (NAME) the paper's figure, beside it ours with its 95 % interval below"
    )
    for one in found.data:
        paragraph(console, f"{one.title}: {counted(one.questions, 'question')}", style="italic")
        tables.outcome(one).show(console)
        for warning in one.warnings:
            paragraph(console, f"warning: {warning}", style="yellow")
    for text in (conclusion(found), f"note: {found.note}" if found.note else ""):
        if text:
            paragraph(console, text)
