"""Reference pages that are written by the program itself: a hook of mkdocs, which calls ``on_files`` at every build.

They are made of what the command line prints (``--help``, ``--json``) and of docstrings, so that they cannot fall behind.
``python docs/generate_reference.py FOLDER`` writes them as files.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.testing import CliRunner

from gnothi import errors
from gnothi.cli.main import cli
from gnothi.config import as_text, settings_of
from gnothi.serving.settings import ServerSettings

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parent.parent
PYTHON = {
    "gnothi": (
        "The interface",
        [
            "gnothi",
            "gnothi.api.rag",
            "gnothi.session.asking",
            "gnothi.session.knowledge",
            "gnothi.api.evaluate",
            "gnothi.api.calibrate",
            "gnothi.api.train",
            "gnothi.api.serve",
            "gnothi.calibration.file",
            "gnothi.api.opening",
            "gnothi.methods.steps.of_function",
            "gnothi.methods.steps.function_steps",
            "gnothi.signals.of_function",
            "gnothi.models.of_function",
            "gnothi.models.remote.budget",
        ],
    ),
    "protocols": ("Types and protocols", ["gnothi.types", "gnothi.protocols", "gnothi.events", "gnothi.errors"]),
    "signals": ("Signals and gates", ["gnothi.signals.base", "gnothi.signals.gate", "gnothi.signals.registry"]),
    "retrieval": (
        "Retrieval and graphs",
        ["gnothi.retrieval.bm25", "gnothi.retrieval.writer", "gnothi.retrieval.wrappers", "gnothi.graph.graph"],
    ),
    "statistics": (
        "Statistics",
        [f"gnothi.stats.{name}" for name in ("auroc", "intervals", "paired", "guarantee", "frontier")],
    ),
    "testing": (
        "Testing",
        [
            "gnothi.testing.model",
            "gnothi.testing.retriever",
            "gnothi.testing.conformance.method",
            "gnothi.testing.conformance.signal",
            "gnothi.testing.conformance.retriever",
            "gnothi.testing.conformance.language_model",
        ],
    ),
}


def pages() -> dict[str, str]:
    """Every generated page: its path below ``docs/``, and its Markdown."""
    found = {
        "reference/cli.md": "\n".join(["# Command line\n", *_commands(cli, "gnothi")]),
        "reference/methods.md": "\n".join(["# Methods and their settings\n", *_methods()]),
        "reference/settings.md": "\n".join(["# Settings of models and of the server\n", *_models()]),
        "reference/errors.md": _errors(),
    }
    found["project/changelog.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](../")
    for name, (title, modules) in PYTHON.items():
        found[f"reference/python/{name}.md"] = "\n".join([f"# {title}\n", *(f"::: {module}\n" for module in modules)])
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by mkdocs once it has read the folder."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by mkdocs for each page: what lies beside the folder in the repository is a page of its own on the site."""
    return markdown.replace("](../../CHANGELOG.md", "](changelog.md")


def on_page_content(html: str, **_: object) -> str:
    """Called by mkdocs for each page: no line ends inside "-.1 to .2". What may be copied stays as it is."""
    kept = r"<(pre|code)\b.*?</\1>"
    return re.sub(
        rf"{kept}|\d to [−+±]?\.?\d",
        lambda found: found[0] if found[1] else found[0].replace(" ", "&nbsp;"),
        html,
        flags=re.S,
    )


def _commands(command: click.Command, name: str) -> Iterator[str]:
    yield f"## `{name}`\n\n```text\n{_printed(*name.split()[1:], '--help').rstrip()}\n```\n"
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _commands(found, f"{name} {below}")


def _methods() -> Iterator[str]:
    how = "[how](../how-to/ask.md#change-settings)"
    yield f"Give settings with `--set KEY=VALUE`, in a file, in the environment ({how}) or as keywords in Python.\n"
    for method in json.loads(_printed("list", "methods", "--json")):
        yield f"## `{method['name']}`\n\n{method['summary']}\n\n{method['source']} Needs: {', '.join(method['needs'])}.\n"
        if method["settings"]:
            yield _table(method["settings"])
        if method["shared"]:
            yield f"[Shared](#shared-settings): {', '.join(method['shared'])}.\n"
    shared = json.loads(_printed("list", "settings", "--json"))
    yield "## Shared settings\n"
    for group, settings in shared["groups"].items():
        yield f"### {group.capitalize()}\n"
        yield _table(settings)
    yield "| signal | its settings |\n|---|---|"
    yield from (f"| `{name}` | {', '.join(f'`{key}`' for key in keys) or 'none'} |" for name, keys in shared["signals"].items())


def _models() -> Iterator[str]:
    found = json.loads(_printed("list", "models", "--json"))
    yield "| `--model` | meaning |\n|---|---|"
    yield from (f"| `{one['spec']}` | {_cell(one['summary'])} |" for one in found["models"])
    for kind in dict.fromkeys(one["models"] for one in found["settings"]):
        yield f"\n## Models {kind}\n"
        yield _table([one for one in found["settings"] if one["models"] == kind])
    yield "\n## The server\n\nIn `[server]` of a file, or `--set server.KEY=VALUE`: [how](../how-to/serve.md).\n"
    yield _table(
        [
            {"key": key, "default": as_text(one.default), "type": one.type_name, "help": one.help, "range": one.range}
            for key, one in settings_of(ServerSettings).items()
        ]
    )


def _errors() -> str:
    tree = re.search(r"(?ms)^GnothiError\n.*\Z", errors.__doc__ or "")
    assert tree, "the docstring of gnothi.errors draws no tree"
    codes = (
        ("0", "done"),
        ("1", "some questions failed, or a run stopped before its end; what is finished is kept, the same command goes on"),
        ("2", "usage or configuration: an unknown name, a setting that cannot be, a promise that the sample cannot support"),
        ("3", "a model, index, server or extra is not available"),
        ("130", "interrupted; what writes to a folder goes on with the same command"),
        ("143, 129", "the same by SIGTERM, or by a terminal that was closed"),
    )
    rows = "\n".join(f"| {code} | {meaning} |" for code, meaning in codes)
    return (
        "# Errors and exit codes\n\nIn Python, errors are told by type: `gnothi.errors.NAME`. On the command line, each is one "
        "message and an exit code. Every message says what was got, what was expected and what to do.\n\n"
        f"```text\n{tree.group().rstrip()}\n```\n\n| exit code | means |\n|---|---|\n{rows}\n\n"
        "`GNOTHI_DEBUG=1` (or `gnothi --debug ...`) shows where an error came from. A traceback without that is a bug: please "
        "report it.\n"
    )


def _table(settings: list[dict[str, Any]]) -> str:
    typed = [(one, ", ".join(filter(None, (one["type"], one["range"])))) for one in settings]
    rows = (f"| `{one['key']}` | {_cell(one['default'])} | {_cell(kind)} | {_cell(one['help'])} |" for one, kind in typed)
    return "\n".join(["| setting | default | type | meaning |", "|---|---|---|---|", *rows, ""])


def _cell(text: object) -> str:
    return str(text if text is not None else "none").replace("|", "\\|").replace("\n", " ")


def _printed(*arguments: str) -> str:
    done = CliRunner().invoke(cli, list(arguments), prog_name="gnothi", catch_exceptions=False, terminal_width=90)
    assert done.exit_code == 0, f"gnothi {' '.join(arguments)}: {done.output}"
    return str(done.stdout)


if __name__ == "__main__":
    for path, text in pages().items():
        (Path(sys.argv[1]) / path).parent.mkdir(parents=True, exist_ok=True)
        (Path(sys.argv[1]) / path).write_text(text, encoding="utf-8")
