"""What the command line says beside its results."""

from __future__ import annotations

import click

from gnothi.naming import on_the_command_line


def say(text: str) -> None:
    """On stderr, with parameters as flags; what it repeats of files, models and servers does not steer the terminal."""
    click.echo(on_the_command_line(text), err=True)
