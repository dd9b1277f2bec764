"""A model that answers when the test lets it, and tells who gave up."""

from __future__ import annotations

import asyncio

from gnothi.models.wrappers import Wrapper
from gnothi.testing.model import Scripted
from gnothi.types import Decoding, Generation, Prompt
from tests.command_line import script


class Slow(Wrapper):
    """``asked`` calls so far, of which ``dropped`` were cancelled; ``go`` lets all of them go on. With ``broken`` they fail."""

    def __init__(self, broken: Exception | None = None) -> None:
        super().__init__(Scripted(script, name="lab", thresholds={"gram": -6.0}))
        self.go = asyncio.Event()
        self.asked = self.dropped = 0
        self._broken = broken

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        self.asked += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        if self._broken is not None:
            raise self._broken
        return await super().generate(prompt, decoding)
