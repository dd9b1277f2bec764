"""The entry point: one file per command, imported when it is asked for, and errors turned into one line and an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from gnothi.cli import signals
from gnothi.cli.saying import Group, say
from gnothi.cli.signals import INTERRUPTED
from gnothi.errors import GnothiError, ResourceUnavailable
from gnothi.naming import on_the_command_line
from gnothi.own_code import place_of
from gnothi.version import __version__

BROKEN_PIPE = 141
_SHORT_OF = {
    "can't start new thread": "threads",
    "allocate memory": "memory",
    "failed to map segment": "memory",
}
"""What errors of no kind of their own say where the system has no room: Python of a thread, torch of a tensor, the loader of
a library."""

# Name -> where it lives and its line in the help, written here so that `gnothi --help` imports no command.
COMMANDS: dict[str, tuple[str, str]] = {
    "ask": ("gnothi.cli.ask:ask", "Answer one question and show every decision, or answer a file of questions."),
    "index": ("gnothi.cli.index:index", "Index documents or a knowledge graph: build, embed, search, info, delete."),
    "eval": ("gnothi.cli.evaluate:evaluate", "Run methods over a data set."),
    "reproduce": (
        "gnothi.cli.reproduce:reproduce",
        "Reproduce a table of SeaKR, KEQA, SKILL-RAG or IEKR, or run an ablation.",
    ),
    "report": ("gnothi.cli.report:report", "Show runs: tables, one HTML page with pictures and every decision, or a forecast."),
    "export": ("gnothi.cli.export:export", "Write a run for other tools: Inspect, RAGAS, Parquet, JSON Lines."),
    "calibrate": (
        "gnothi.cli.calibrate:calibrate",
        "Choose a gate's threshold for a model; replay or learn gates on recorded runs.",
    ),
    "train": (
        "gnothi.cli.train:train",
        "Train a probe, a model that says whether it knows, a reader, a re-ranker, a reference or a classifier.",
    ),
    "serve": ("gnothi.cli.serve:serve", "Answer questions over HTTP, with OpenAI's API."),
    "mcp": ("gnothi.cli.serve:mcp", "Offer ask, know and search to a program that speaks MCP (Model Context Protocol)."),
    "keys": ("gnothi.cli.keys:keys", "List, make and revoke the API keys of a server."),
    "lab": ("gnothi.cli.lab:lab", "The built-in laboratory: an invented world and a small model that knows part of it."),
    "cache": ("gnothi.cli.cache:cache", "Show or delete cached replies and models."),
    "list": ("gnothi.cli.listings:listing", "List methods, settings, signals, models, data sets, recipes or plug-ins."),
}


class LazyGroup(Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def summaries(self, ctx: click.Context) -> list[tuple[str, str]]:  # noqa: ARG002
        return [(name, summary) for name, (_, summary) in COMMANDS.items()]


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gnothi")
@click.option(
    "--debug", is_flag=True, envvar="GNOTHI_DEBUG", help="Show where an error came from. GNOTHI_DEBUG=1 does the same."
)
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Answer questions with a language model that searches only for what it does not know.

    \b
    gnothi ask "What is the birthplace of the star of The Hollow Letter?"
    gnothi eval lab --method direct,rag,seakr --limit 20 --out runs/lab
    gnothi report runs/lab --html report.html

    These commands run without further data: the package has an invented world (lab), questions about it, and a small model
    that knows part of it. For details, see gnothi COMMAND --help.

    Exit codes: 0 done, 1 done in part (questions or files failed, or the run stopped early), 2 wrong usage or
    configuration, or no result, 3 a model, index or server is unavailable.
    """
    ctx.obj = debug
    if os.environ.get("NO_COLOR") or os.environ.get("FORCE_COLOR"):
        ctx.color = not os.environ.get("NO_COLOR")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and exit. Installed as the command ``gnothi``."""
    if arguments is None:
        _know_utf8()
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # for all that a command loads: see libraries.sleeping_threads
    for name in ("stdout", "stderr"):  # closed, as by >&-: what is said goes nowhere
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # an answer may hold letters that the terminal's encoding lacks
            stream.reconfigure(errors="replace")
    signals.heed()
    ended = run(sys.argv[1:] if arguments is None else arguments)
    code = signals.exit_code(ended)
    signals.let_go()
    if ended == INTERRUPTED:
        signals.leave(code)
    sys.exit(code)


def _know_utf8() -> None:
    """Start again in Python's UTF-8 mode where it was switched off and the locale knows ASCII only (``C``): arguments and names
    of files would be no text otherwise."""
    if sys.getfilesystemencoding() == "ascii" and os.environ.get("PYTHONUTF8") != "1" and sys.executable:
        os.environ["PYTHONUTF8"] = "1"  # for programs that are started from here, too; and so never twice
        os.execv(sys.executable, sys.orig_argv)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; nothing but a bug shows a traceback (or ``--debug``)."""
    debug = "--debug" in arguments or os.environ.get("GNOTHI_DEBUG", "").lower() in {"1", "true", "yes", "on"}
    try:
        result = cli.main(args=list(arguments), prog_name="gnothi", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except GnothiError as error:
        return _fail(on_the_command_line(error.message), error.exit_code, debug)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted. If it writes to a folder, run the same command again to resume.", INTERRUPTED, debug)
    except BrokenPipeError:
        # Whoever read our output has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except SystemExit:
        return BROKEN_PIPE  # click's one exit of its own outside standalone mode, for the same reason
    except MemoryError:
        return _fail(_short_of("memory"), ResourceUnavailable.exit_code, debug)
    except OSError as error:
        return _fail(on_the_command_line(_system_message(error)), ResourceUnavailable.exit_code, debug)
    except Exception as error:
        short = next((what for part, what in _SHORT_OF.items() if part in str(error)), None)
        if short is not None and isinstance(error, RuntimeError | ImportError):
            return _fail(_short_of(short), ResourceUnavailable.exit_code, debug)
        if (where := place_of(error)) is None:
            raise
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        return _fail(f"{what} (in {where}). Correct it there; --debug shows the calls that led to it.", 1, debug)
    return result if isinstance(result, int) else 0


def _fail(message: str, exit_code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    say(f"gnothi: {message}")
    return exit_code


def _short_of(what: str) -> str:
    return (
        f"the system gives no more {what}. What was written before is kept. Close other programs or raise the limit "
        "(ulimit -a shows it), then give the same command again."
    )


def _system_message(error: OSError) -> str:
    where = f" {error.filename}" if error.filename is not None else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        too_long = error.errno == errno.EFBIG
        full = "the system lets no file grow longer" if too_long else "the disk is full"
        more = "raise the limit (ulimit -f shows it)" if too_long else "free some space"
        return (
            f"{full}: cannot write{where}. What was written before is kept: "
            f"{more} and give the same command again, or choose another --out."
        )
    return (
        f"cannot use{where or ' a file'}: {error.strerror or error}. Check that it exists and that you may read and write it."
    )
