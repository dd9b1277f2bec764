"""Replies of a bounded length: a server that sends without end fills no memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

longest: ContextVar[int] = ContextVar("longest")
"""Bytes that the reply to the request under way may have."""
AT_LEAST = 8 * 2**20
PER_TOKEN, PER_BYTE_READ = 4096, 1024
"""Bytes of reply for each token asked for, and for each byte of the request: scored prompts come back token by token, each
with the likeliest others."""


class TooLong(Exception):
    """A reply beyond what its request can need."""


def bound(generated: int, read: int) -> int:
    """Bytes that are enough for a reply of so many tokens to a request of so many bytes."""
    return AT_LEAST + PER_TOKEN * generated + PER_BYTE_READ * read


def client() -> httpx2.AsyncClient:
    """The official client's transport, which stops at ``longest``. Raises ImportError."""
    import httpx2
    import openai

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, limit: int) -> None:
            self._stream, self._limit = stream, limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            seen = 0
            async for piece in self._stream:
                seen += len(piece)
                if seen > self._limit:
                    raise TooLong(f"the reply goes on after {self._limit:,} bytes, more than its request can need")
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def stop(response: httpx2.Response) -> None:
        response.stream = Bounded(response.stream, longest.get(AT_LEAST))

    return openai.DefaultAsyncHttpxClient(event_hooks={"response": [stop]})


def invalid_url() -> type[Exception]:
    """What the transport raises for an address that cannot be."""
    import httpx2

    return httpx2.InvalidURL
