"""What the command line says beside its results; and groups of commands, which say what each does in full, and what a misspelt
one may have meant."""

from __future__ import annotations

import click

from gnothi.errors import UnknownName
from gnothi.naming import on_the_command_line


def say(text: str) -> None:
    """On stderr, with parameters as flags; what it repeats of files, models and servers does not steer the terminal."""
    click.echo(on_the_command_line(text), err=True)


_LONGEST = 200


class Group(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            raise UnknownName("command" if ctx.parent is None else f"command of {ctx.command_path}", args[0], names)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(self.summaries(ctx))

    def summaries(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Each command's name and the first sentence of its help."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return [(name, command.get_short_help_str(_LONGEST)) for name, command in commands.items() if command]
