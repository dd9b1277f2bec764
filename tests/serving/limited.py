"""A server over a scripted model in a process that may open few files: ``python -m tests.serving.limited FILES [SECONDS]``.

Says its address, then how many connections it takes, and ends with its input."""

from __future__ import annotations

import asyncio
import resource
import sys

from tests.serving.served import served


async def main(files: int, seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    async with served(methods=("direct",), client_timeout=seconds) as server:
        sys.stdout.write(f"{server.url} {server.server.connections.most}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 30.0))
