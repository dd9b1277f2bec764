"""Questions answered on a cluster of Ray: actors have models and indexes open, and whoever asks keeps the rows.

Ray brings placement, GPUs and news of what died. Its own checkpoints are not used: they kept nothing of a killed driver's work,
where a run folder keeps every finished row. So a lost actor, node or driver costs what was under way, and no more.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

from gnothi.errors import InvalidSetting, MissingDependency, WorkerDied
from gnothi.runs.workers import Ask, Open, R, portable
from gnothi.types import Question
from gnothi.version import __version__

RAY = "ray"
TRIES = 3
"""How often a question is asked whose actor is lost meanwhile; and how many actors in a row may be lost without an answer."""
_PATIENCE = 10.0  # seconds for actors to close what they have open


def address_of(spec: str) -> str | None:
    """Of ``ray`` (None: the cluster of this machine, or one that is started) or ``ray:ADDRESS``. Raises InvalidSetting."""
    kind, colon, address = spec.partition(":")
    if kind != RAY or (colon and not address):
        raise InvalidSetting(f"<--on>: got {spec!r}, expected ray, or ray:HOST:PORT for a cluster's address.")
    return address or None


class Told(NamedTuple):
    """What an actor says once it is open."""

    version: str
    under_way: int | None
    precision: str | None


@asynccontextmanager
async def on_ray(
    spec: str, count: int, gpus: float | None, opened: Open, ask: Ask[R], warn: Callable[[str], None]
) -> AsyncIterator[Cluster[R]]:
    """Up to ``count`` actors that open what is asked, with ``gpus`` each (None: one where there are any). It begins with the
    first that is open; the others join, and lost ones are replaced, as soon as Ray finds room.

    Raises MissingDependency, InvalidSetting where there is no such cluster or no room for one actor, and what opening raises.
    """
    address = address_of(spec)
    ray = _ray()
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address)
    cluster: Cluster[R] | None = None
    try:
        share = _share([node["Resources"] for node in ray.nodes() if node["Alive"]], count, gpus)
        make = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=0, max_task_retries=0)(Host).remote
        gone = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError)
        cluster = Cluster(lambda: make(opened, ask), ray.kill, gone, count, warn)
        await cluster.begin()
        yield cluster
    finally:
        if cluster is not None:
            await cluster.close()
        if ours:
            await asyncio.to_thread(ray.shutdown)


class Cluster(Generic[R]):
    """Answers questions where least is under way. ``under_way``: how many all actors gain from at a time, ``precision``: in
    which the model computes, if it says."""

    def __init__(
        self,
        make: Callable[[], Any],
        kill: Callable[[Any], None],
        gone: tuple[type[Exception], ...],
        count: int,
        warn: Callable[[str], None],
    ) -> None:
        self._make, self._kill, self._gone, self._warn = make, kill, gone, warn
        self._actors: list[_Actor] = []
        self._count, self._lost = count, 0
        self._first: Told | None = None
        self.under_way: int | None = None
        self.precision: str | None = None

    async def begin(self) -> None:
        self._actors = [self._start() for _ in range(self._count)]
        first = (await self._least_busy()).opening.result()
        self.under_way = first.under_way and first.under_way * self._count
        self.precision = first.precision  # that of all: one in another is refused

    async def __call__(self, name: str, question: Question) -> R:
        """Raises WorkerDied, or whatever stops the run in the actor."""
        for _ in range(TRIES):
            actor = await self._least_busy()
            actor.busy += 1
            try:
                result = await actor.handle.answer.remote(name, question)
            except self._gone as error:
                self._replace(actor, error)
                continue
            finally:
                actor.busy -= 1
            self._lost = 0
            if isinstance(result, Exception):
                raise result
            answer: R = result
            return answer
        raise WorkerDied(
            f"stopped: the question {question.id!r} was given to {TRIES} actors of Ray, and each was lost with it. Where "
            "memory ran out, give each more with <--gpus>, or lower <--concurrency>. What is finished is kept: the same "
            "command goes on from there."
        )

    async def close(self) -> None:
        opened = [one for one in self._actors if one.opening.done() and not one.opening.exception()]
        closing = [asyncio.ensure_future(_awaited(one.handle.close.remote())) for one in opened]
        if closing:
            await asyncio.wait(closing, timeout=_PATIENCE)
        for one in self._actors:
            one.opening.cancel()
            self._kill(one.handle)
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, *(one.opening for one in self._actors), return_exceptions=True)

    async def _least_busy(self) -> _Actor:
        """Of those that are open; waits for the first."""
        while True:
            for one in list(self._actors):
                if one.opening.done() and (error := one.opening.exception()):
                    if not isinstance(error, self._gone):
                        raise error
                    self._replace(one, error)
            ready = [one for one in self._actors if one.opening.done()]
            if ready:
                return min(ready, key=lambda one: one.busy)
            await asyncio.wait([one.opening for one in self._actors], return_when=asyncio.FIRST_COMPLETED)

    def _start(self) -> _Actor:
        handle = self._make()
        return _Actor(handle, asyncio.ensure_future(self._open(handle)))

    async def _open(self, handle: Any) -> Told:
        told = await _open(handle)
        self._first = self._first or told
        if told.precision != self._first.precision:
            raise InvalidSetting(
                f"<--on>: the model computes in {told.precision} on one node and in {self._first.precision} on another, so its "
                "numbers would differ. Say in which: <--set model.dtype=...>"
            )
        return told

    def _replace(self, actor: _Actor, error: Exception) -> None:
        """By a new one, which Ray places where there is room. Many questions may tell of the same loss."""
        if actor not in self._actors:
            return
        why = (str(error).strip() or repr(error)).splitlines()[0]
        self._lost += 1
        if self._lost > TRIES * self._count:
            raise WorkerDied(
                f"stopped: {self._lost} actors of Ray were lost, one after the other, without an answer between; the last "
                f"said: {why} What is finished is kept: remove the cause and give the same command again."
            )
        self._warn(f"an actor of Ray was lost, with {actor.busy} questions that are asked again: {why}")
        self._kill(actor.handle)
        self._actors[self._actors.index(actor)] = self._start()


@dataclass(eq=False)
class _Actor:
    handle: Any
    opening: asyncio.Future[Told]
    busy: int = 0


async def _awaited(reference: Any) -> Any:
    return await reference


async def _open(handle: Any) -> Told:
    told = await handle.open.remote()
    if isinstance(told, Exception):
        raise told
    found: Told = told
    if found.version != __version__:
        raise InvalidSetting(
            f"<--on>: a node of the cluster has Gnothi {found.version}, expected {__version__} as here. Install the same "
            "version on every node."
        )
    return found


# --- Ray itself ----------------------------------------------------------------------------------------------------------


def _ray() -> Any:
    # Asked for by nobody: Ray reports its use to its makers unless this is set before it starts.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != RAY:
            raise
        raise MissingDependency(RAY, RAY, "<--on ray>") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    try:
        ray.init(address=address, log_to_driver=False, logging_level="warning")
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"the cluster of Ray at {address!r}" if address else "Ray on this machine"
        raise InvalidSetting(
            f"<--on>: {where} cannot be reached: {str(error).strip()[:300] or type(error).__name__} Expected the address that "
            "`ray start --head` printed, as in ray:HOST:6379; `ray status` says whether it is up."
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


class Host:
    """The actor. What is raised is returned, as the error that it is: Ray would wrap it."""

    def __init__(self, opened: Open, ask: Ask[Any]) -> None:
        self._opened, self._ask = opened, ask
        self._found: Mapping[str, Any] = {}
        self._closing = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> Told | Exception:
        told: asyncio.Future[Told | Exception] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._serve(told))
        return await told

    async def answer(self, name: str, question: Question) -> Any:
        try:
            return await self._ask(name, self._found[name], question)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
            return portable(error)

    async def close(self) -> None:
        self._closing.set()
        if self._serving is not None:
            await self._serving

    async def _serve(self, told: asyncio.Future[Told | Exception]) -> None:
        """One task opens and closes, as some of what is open demands."""
        try:
            async with self._opened() as found:
                self._found = found
                told.set_result(Told(__version__, getattr(found, "under_way", None), getattr(found, "precision", None)))
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001 - raised by whoever opened
            if not told.done():
                told.set_result(portable(error))
