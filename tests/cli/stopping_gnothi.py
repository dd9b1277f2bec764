"""The command line with a scripted model that takes its time; run as a program, to be interrupted."""

from __future__ import annotations

import asyncio
import sys

from gnothi.cli import main
from gnothi.session import sources
from gnothi.testing.model import Scripted
from gnothi.types import Decoding, Generation, Prompt
from tests.command_line import script, stand_in


class Slow(Scripted):
    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        await asyncio.sleep(0.05)
        return await super().generate(prompt, decoding)


if __name__ == "__main__":
    sources.open_model = stand_in(Slow(script, name="lab"))  # type: ignore[assignment]
    main.main(sys.argv[1:])
