"""``gnothi lab``: the laboratory's world and model, its questions, and the training of the model."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnothi.cli import options
from gnothi.cli.saying import Group, say
from gnothi.errors import InvalidSetting, UnknownName, counted
from gnothi.report.terminal import console as terminal

if TYPE_CHECKING:
    from gnothi.lab import Grid, World
    from gnothi.lab.training import Recipe
    from gnothi.types import Question

GRID_SECTION = "grid"
SETTINGS_FILE = "training.toml"

of_world = click.option(
    "--world",
    "named",
    default="",
    metavar="WORLD",
    help="The world: a seed, a lab model's folder or a TOML file. [default: 0]",
)


@click.group(cls=Group)
def lab() -> None:
    """The laboratory: an invented world, and a small model that knows a known part of it."""


@lab.command()
@of_world
@options.json
def info(named: str, as_json: bool) -> None:
    """Show what the built-in world, its library and its model hold, or another world and its library."""
    from gnothi import lab as laboratory

    document = _world(laboratory.world(named)) | ({} if named else {"model": _model()})
    if as_json:
        terminal.print_json(document)
        return
    for heading, rows in document.items():
        click.secho(heading, bold=True)
        shown = {"": rows} if not isinstance(rows, dict) else rows
        click.echo("\n".join(terminal.definitions((name, _shown(value)) for name, value in shown.items())))


@lab.command()
@click.option(
    "--kind",
    metavar="KIND",
    help="One kind of question, such as one_hop, two_hop or choice. [default: all, in the default mix]",
)
@click.option(
    "--n", "count", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Number of questions."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the choice of questions.")
@of_world
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the questions as JSON Lines, for `gnothi eval`.",
)
@options.json
def questions(kind: str | None, count: int, seed: int, named: str, out: Path | None, as_json: bool) -> None:
    """Show questions about the world, each with what the model saw, what the library holds, and the right action."""
    from gnothi import lab as laboratory
    from gnothi.session.data import LAB_QUESTIONS

    kinds: dict[str, Any] = {name: name for name in laboratory.KINDS}
    if kind is not None and kind not in kinds:
        raise UnknownName("kind of question", kind, kinds)
    made = max(count, LAB_QUESTIONS)  # so that fewer are the first of more, as with eval's --limit
    asked = laboratory.questions(laboratory.world(named), kinds[kind] if kind else None, made, seed)[:count]
    if out is not None:
        out.write_text("".join(json.dumps(_record(question), ensure_ascii=False) + "\n" for question in asked), "utf-8")
        say(f"{counted(len(asked), 'question')} in {out}")
    if as_json:
        terminal.print_json([_record(question) for question in asked])
    elif out is None:
        for question in asked:
            choices = f" ({' / '.join(question.choices)})" if question.choices else ""
            truth = [question.metadata[key] for key in ("familiarity", "coverage", "right_action")]
            click.echo(f"{question.text}{choices}")
            click.echo(f"    {', '.join(question.answers)}    seen {truth[0]}, library: {truth[1]}, right: {truth[2]}")


@lab.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("lab-model"),
    show_default=True,
    metavar="FOLDER",
    help="Folder of the model. If the training is unfinished, the command resumes.",
)
@click.option("--seed", type=int, help="Seed of the world and the model. [default: 0, the built-in world]")
@options.sources(
    spending=False,
    sets="KEY of the recipe, or grid.KEY, a share of the world's grid",
    config="A TOML file of settings.",
)
def train(out: Path, seed: int | None, sources: options.Sources) -> None:
    """Train the laboratory's model from nothing, on a GPU if there is one.

    Settings of the recipe and shares of the world's grid: --set steps=100, --set grid.often=0.5. Run the same command again to
    resume. Use the result with --model FOLDER.
    """
    from gnothi.config import resolved, to_toml
    from gnothi.lab.training import train as run

    recipe, grid = _recipe(sources.settings)
    recipe = recipe if seed is None else replace(recipe, seed=seed)
    wanted = to_toml(resolved(recipe) | {f"{GRID_SECTION}.{key}": value for key, value in resolved(grid).items()})
    _claim(out, wanted)
    run(out, recipe, grid, report=_report)
    say(f"trained: use it with `gnothi eval {_data_set(out)} --model {out}`")


def _data_set(out: Path) -> str:
    """The questions about its world."""
    from gnothi.session.worlds import own

    return own(str(out)) or "lab"


def _recipe(settings: Any) -> tuple[Recipe, Grid]:
    from gnothi.config import build
    from gnothi.lab import Grid
    from gnothi.lab.training import Recipe

    recipe = build(Recipe, settings.plain({GRID_SECTION}), "the lab's training")
    return recipe, build(Grid, settings.section(GRID_SECTION), "the lab's grid")


def _claim(out: Path, wanted: str) -> None:
    """Note in ``out`` what is being trained there. Raises InvalidSetting where it is something else."""
    note = out / SETTINGS_FILE
    if note.is_file():
        if note.read_text("utf-8") != wanted:
            raise InvalidSetting(
                f"{out} holds a training with other settings (see {note}); expected the same ones. Choose another --out."
            )
        return
    out.mkdir(parents=True, exist_ok=True)
    note.write_text(wanted, "utf-8")


def _report(row: dict[str, Any]) -> None:
    """One probe: where the training stands and what the model can do by now."""
    seconds = f"{row['seconds']:.0f} s"
    say(f"step {row['step']}, {row['tokens']:,} tokens, {seconds}, loss {row['loss']:.3f}")
    abilities = [f"{name} {value:.2f}" for name, value in row.items() if name not in ("step", "tokens", "seconds", "loss")]
    say("\n".join(f"    {line}" for line in terminal.wrap("; ".join(abilities), 76)))


def _world(world: World) -> dict[str, Any]:
    from gnothi import lab as laboratory
    from gnothi.lab.questions import DEFAULT_MIX

    entities = world.entities.values()
    grid = Counter((entity.familiarity, entity.coverage) for entity in entities)
    return {
        "world": {
            "seed": world.seed,
            "fingerprint": world.fingerprint,
            "entities": dict(Counter(entity.type for entity in entities)),
            "facts": len(world.facts),
            "relations": len({fact.relation for fact in world.facts}),
        },
        "library": {"passages": len(laboratory.passages(world)), "triples": len(laboratory.triples(world))},
        "entities by what the model saw and what the library holds": {
            familiarity: {coverage: count for (seen, coverage), count in sorted(grid.items()) if seen == familiarity}
            for familiarity in dict.fromkeys(entity.familiarity for entity in entities)
        },
        "questions in the default mix": {kind: f"{share:.0%}" for kind, share in DEFAULT_MIX.items()},
    }


def _model() -> dict[str, Any] | str:
    """What the folder of the shipped model says of it."""
    from gnothi.models import LAB_FOLDER

    if not (LAB_FOLDER / "config.json").is_file():
        return "not in this installation; make it with: gnothi lab train"
    config = json.loads((LAB_FOLDER / "config.json").read_text("utf-8"))
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings")
    card: dict[str, Any] = {name.replace("_", " "): config[name] for name in names}
    weights = sum(path.stat().st_size for path in LAB_FOLDER.glob("*.safetensors"))
    card["weights"] = f"{weights / 1e6:.1f} MB"
    curve = LAB_FOLDER / "curve.jsonl"
    if curve.is_file():
        last = json.loads(curve.read_text("utf-8").splitlines()[-1])
        card |= {name: value for name, value in last.items() if name not in ("seconds", "loss")}
    return card


def _record(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "question": question.text,
        "answers": list(question.answers),
        "choices": list(question.choices),
        "kind": question.kind,
        "metadata": dict(question.metadata),
    }


def _shown(value: Any) -> str:
    return ", ".join(f"{count} {name}" for name, count in value.items()) if isinstance(value, dict) else str(value)
