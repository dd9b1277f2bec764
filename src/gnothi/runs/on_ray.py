"""Workers that are actors of Ray, on the nodes of a cluster.

Ray brings placement, GPUs and news of what died. Its own checkpoints are not used: they kept nothing of a killed driver's work,
where a run folder keeps every finished row.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from gnothi.errors import InvalidSetting, MissingDependency, sentence
from gnothi.runs.host import Ask, Assignment, Host, Open, WorkerInfo
from gnothi.runs.remote_worker import Kind, Lost, Place

RAY = "ray"


def address_of(spec: str) -> str | None:
    """Of ``ray`` (None: the cluster of this machine, or one that is started) or ``ray:ADDRESS``. Raises InvalidSetting."""
    kind, colon, address = spec.partition(":")
    if kind != RAY or (colon and not address):
        raise InvalidSetting(f"<--on>: got {spec!r}, expected ray, or ray:HOST:PORT for a cluster's address.")
    return address or None


@asynccontextmanager
async def actors(spec: str, count: int, gpus: float | None, opened: Open, ask: Ask[Any]) -> AsyncIterator[Kind]:
    """Actors with ``gpus`` each (None: one where there are any), up to ``count``. Ray places one as soon as it finds room.

    Raises MissingDependency, and InvalidSetting where there is no such cluster or no room for one actor.
    """
    address = address_of(spec)
    ray = _ray()
    ours = not ray.is_initialized()
    if ours:
        with _signal_kept():
            _connect(ray, address)
    try:
        share = _share([node["Resources"] for node in ray.nodes() if node["Alive"]], count, gpus)
        make = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=0, max_task_retries=0)(Host).remote
        yield Kind(
            lambda _: _Actor(ray, make(opened, ask)),
            "an actor of Ray",
            "actors of Ray",
            "give each more with <--gpus>, or lower <--concurrency>",
            together=False,
        )
    finally:
        if ours:
            await asyncio.to_thread(ray.shutdown)


class _Actor(Place):
    """One call of its ``work`` is under way as long as questions are: it takes questions there, and answers back."""

    def __init__(self, ray: Any, handle: Any) -> None:
        super().__init__()
        self._ray, self._handle = ray, handle
        self._losses = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError)
        self._working: asyncio.Task[None] | None = None

    async def open(self) -> WorkerInfo:
        try:
            info = await self._handle.open.remote()
        except self._losses as error:
            self._gone(_reason(error))
            raise Lost(_reason(error)) from None
        if isinstance(info, Exception):
            raise info
        found: WorkerInfo = info
        return found

    async def close(self) -> None:
        await self._handle.close.remote()

    async def end(self) -> None:
        if self._working is not None:
            self._working.cancel()
        self._ray.kill(self._handle)

    def _send(self, assignments: Sequence[Assignment]) -> None:
        if self._working is None or self._working.done():
            self._working = asyncio.ensure_future(self._work(assignments))
        else:
            self._handle.take.remote(assignments)  # where that is lost, so is the call that is under way

    async def _work(self, assignments: Sequence[Assignment]) -> None:
        try:
            while True:
                self._arrived(await self._handle.work.remote(assignments))
                await asyncio.sleep(0)  # whoever got an answer asks the next question
                assignments, self._outbox = self._outbox, []
                if not self.busy:
                    return
        except self._losses as error:
            self._gone(_reason(error))
        except Exception as error:  # noqa: BLE001 - nothing comes any more: it belongs to whoever waits
            self._failed(error)


def _reason(error: Exception) -> str:
    text = (str(error).strip() or repr(error)).splitlines()[0]
    return f"said: {text}{'' if text.endswith('.') else '.'}"


# --- Ray itself ----------------------------------------------------------------------------------------------------------


def _ray() -> Any:
    # Before a cluster is started: asked for by nobody, Ray reports its use to its makers, and its workers give way to all else
    # on the machine (nice 15), which a run without Ray does not.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != RAY:
            raise
        raise MissingDependency(RAY, RAY, "<--on ray>") from None
    return ray


@contextmanager
def _signal_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself: a command would end with a trace of the stack, its rows not summed up."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        ours = before not in (None, signal.SIG_DFL) and threading.current_thread() is threading.main_thread()
        if ours:  # nobody else's: by default Ray's ends what it started
            signal.signal(signal.SIGTERM, before)


def _connect(ray: Any, address: str | None) -> None:
    try:
        ray.init(address=address, log_to_driver=False, logging_level="warning")
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"the cluster of Ray at {address!r}" if address else "Ray on this machine"
        said = sentence(str(error).strip()[:300] or type(error).__name__)
        raise InvalidSetting(
            f"<--on>: {where} cannot be reached: {said} Expected the address that `ray start --head` printed, as in "
            "ray:HOST:6379; `ray status` says whether it is up."
        ) from None


class Share(NamedTuple):
    """What an actor gets of a node."""

    cpus: int
    gpus: float


def _share(nodes: list[Mapping[str, float]], count: int, gpus: float | None) -> Share:
    """With GPUs one processor, without as many as let ``count`` actors have room on the ``nodes``. Raises InvalidSetting where
    no node has room for one."""
    most = max((node.get("GPU", 0.0) for node in nodes), default=0.0)
    wanted = float(min(1.0, most)) if gpus is None else gpus
    if wanted > most:
        raise InvalidSetting(
            f"<--gpus>: got {wanted:g}, expected at most {most:g}: no node of the cluster has more. `ray status` lists them."
        )
    processors = [int(node.get("CPU", 0)) for node in nodes]
    if not max(processors, default=0):
        raise InvalidSetting(
            "<--on>: no node of the cluster offers a processor, expected at least one (`ray start --num-cpus`)."
        )
    if wanted:
        return Share(1, wanted)
    sizes = range(max(processors), 0, -1)
    return Share(next((size for size in sizes if sum(one // size for one in processors) >= count), 1), 0.0)
