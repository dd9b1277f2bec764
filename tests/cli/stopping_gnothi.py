"""The command line with a scripted model, which stops after each line that it keeps; run as a program, to be interrupted or
killed there."""

from __future__ import annotations

import asyncio
import sys

from gnothi.cli import main
from gnothi.runs import journal
from gnothi.session import sources
from gnothi.testing.model import Scripted
from gnothi.types import Decoding, Generation, Prompt
from tests.command_line import script, stand_in
from tests.stopping import stops_after


class Yielding(Scripted):
    """Others have their turn before each reply, as with a model that takes its time."""

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        await asyncio.sleep(0)
        return await super().generate(prompt, decoding)


if __name__ == "__main__":
    sources.open_model = stand_in(Yielding(script, name="lab"))  # type: ignore[assignment]
    # After what a folder was made with is written, a model is opened, and each line of rows, events or labels.
    stops_after(journal, "replace_file")
    stops_after(sources, "open_model")
    stops_after(journal.Journal, "append")
    main.main(sys.argv[1:])
