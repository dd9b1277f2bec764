"""A model that several tests share, where opening it takes seconds."""

from __future__ import annotations

from gnothi.models.wrappers import Wrapper


class Kept(Wrapper):
    """Closing it does nothing."""

    async def aclose(self) -> None:
        return None
