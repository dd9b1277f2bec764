"""One policy for every request: at most so many at a time, within the budget, tried again where that may help.

The official client does the transport; its own retries are off.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from math import ceil
from typing import Any, TypeVar

from gnothi.errors import GnothiError, InvalidSetting, MissingDependency, ModelUnavailable, UsageError
from gnothi.models.remote import bounded
from gnothi.models.remote.budget import Budget, Charge, Prices
from gnothi.models.remote.replies import InvalidReply, bill
from gnothi.models.remote.settings import KEY_VARIABLE, OPENAI, RemoteSettings
from gnothi.retrying import asked_to_wait, backoff, worth_another_try
from gnothi.waiting import waited

T = TypeVar("T")

CONNECT_SECONDS = 10.0
NO_KEY = "none"
OVERHEAD = 128
"""Bytes that a server's chat template is thought to add to a request."""
FIRST_RATIO = 0.5
"""Prompt tokens per byte until the server has told: twice what English text has."""
MARGIN = 1.25
ENOUGH = 500
"""Bytes from which a request shows how many tokens its text has: in shorter ones the server's own part weighs too much."""


class Refused(UsageError):
    """The server understood a request and does not accept it. ``said`` are its words, ``parameter`` what it named."""

    def __init__(self, message: str, said: str, parameter: str | None) -> None:
        super().__init__(message)
        self.said = said
        self.parameter = parameter


class Missing(ModelUnavailable):
    """The server has no such model or endpoint."""


class _Failed(Exception):
    """A try that may be followed by another. ``wait`` is what the server asked for; ``charged`` says whether it may have
    done the work."""

    def __init__(self, what: str, *, wait: float | None = None, charged: bool = False) -> None:
        super().__init__(what)
        self.wait = wait
        self.charged = charged


class Client:
    """Sends requests of one model. Bound to the event loop that it is first used in."""

    def __init__(self, name: str, settings: RemoteSettings, budget: Budget) -> None:
        """``settings`` are located. Raises MissingDependency, or ModelUnavailable where OpenAI is meant and no key is there."""
        try:
            import openai
        except ImportError as error:
            raise MissingDependency("openai", "openai", "a model behind an API") from error
        key = os.environ.get(KEY_VARIABLE, "").strip()
        if not key and settings.base_url == OPENAI:
            raise ModelUnavailable(
                f"model {name!r} is asked at {OPENAI}, which wants a key: set the environment variable {KEY_VARIABLE}; "
                "or name another server with <--set model.base_url=http://...>"
            )
        if not (key.isascii() and key.isprintable()):  # said here: who sends it would repeat it
            raise InvalidSetting(
                f"the key in the environment variable {KEY_VARIABLE} holds a line break or a letter that no key has. "
                "Copy it again, on one line."
            )
        self.name = name
        self.url = settings.base_url
        self.budget = budget
        self._settings = settings
        self._secret = key
        self._prices = Prices(settings.price_in, settings.price_out)
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._pause_until = 0.0
        self._ratio: float | None = None
        try:
            self._client = openai.AsyncOpenAI(
                api_key=key or NO_KEY,
                base_url=settings.base_url,
                max_retries=0,
                timeout=openai.Timeout(settings.timeout, connect=min(CONNECT_SECONDS, settings.timeout)),
                http_client=bounded.client(),
            )
        except bounded.invalid_url() as error:
            raise InvalidSetting(
                f"the address of model {name!r}: got {settings.base_url!r} ({error}), expected one as in http://127.0.0.1:8000/v1."
            ) from None

    async def ask(self, path: str, body: Mapping[str, Any], parse: Callable[[object], T]) -> T:
        """POST ``body`` and read the response with ``parse``, which raises InvalidReply for what is no answer.

        Raises Refused, ModelUnavailable (after all tries, or at once where no try can help) or BudgetSpent.
        """
        return await self._persist(lambda: self._paid(path, body, parse), self._settings.retries)

    async def look(self, path: str, retries: int) -> object:
        """GET, which costs nothing: the JSON of the response. Raises as ``ask``."""
        retries = min(retries, self._settings.retries)
        return await self._persist(lambda: self._send(lambda: self._client.get(path, cast_to=object)), retries)

    async def aclose(self) -> None:
        await self._client.close()

    # --- trying again ------------------------------------------------------------------------------------------------

    async def _persist(self, attempt: Callable[[], Awaitable[T]], retries: int) -> T:
        failures = 0
        while True:
            await self._pause()
            asked, begun = time.perf_counter(), None
            try:
                async with self._slots:
                    begun = time.perf_counter()
                    return await attempt()
            except _Failed as failed:
                failures += 1
                if (advice := self._hopeless(failed, failures, retries)) is not None:
                    raise ModelUnavailable(
                        f"no answer from {self.name} at {self.url}, {_tries(failures)}: {failed}. {advice}"
                    ) from None
                wait = failed.wait
            finally:
                waited(asked, begun, time.perf_counter())
            if wait is not None:
                # What the server asks of one request holds for all.
                self._pause_until = max(self._pause_until, time.monotonic() + wait)
            await asyncio.sleep(backoff(failures) if wait is None else wait + backoff(1))

    def _hopeless(self, failed: _Failed, failures: int, retries: int) -> str | None:
        """What to do about it, where another try makes no sense."""
        longest = self._settings.max_wait
        if failed.wait is not None and failed.wait > longest:
            return f"It asks to wait {failed.wait:.0f} s, longer than <--set model.max_wait={longest:g}> allows."
        if failures > retries:
            return "Look at the server, or try longer with <--set model.retries=...> and <--set model.timeout=...>"
        return None

    async def _pause(self) -> None:
        while (left := self._pause_until - time.monotonic()) > 0:  # noqa: ASYNC110 - it may be moved while we sleep
            await asyncio.sleep(left)

    # --- one try -----------------------------------------------------------------------------------------------------

    async def _paid(self, path: str, body: Mapping[str, Any], parse: Callable[[object], T]) -> T:
        size = _size(body)
        generated = _most_generated(body)
        bounded.longest.set(bounded.bound(generated, size))
        read = ceil((size + OVERHEAD) * (self._ratio or FIRST_RATIO))
        charge = await self.budget.reserve(read, generated, self._prices)
        try:
            data = await self._send(lambda: self._client.post(path, cast_to=object, body=dict(body)))
            self._settle(charge, data, size)
            return parse(data)
        except InvalidReply as error:
            raise _Failed(self._clean(str(error))) from None
        except (GnothiError, _Failed) as error:
            if not charge.settled and not getattr(error, "charged", False):
                charge.settle(0, 0)
            raise
        finally:
            self.budget.close(charge)

    async def _send(self, request: Callable[[], Awaitable[object]]) -> object:
        import openai

        try:
            async with asyncio.timeout(self._settings.timeout):
                data = await request()
            return json.loads(data) if isinstance(data, str) else data
        except bounded.TooLong as error:
            raise _Failed(str(error), charged=True) from None
        except (TimeoutError, openai.APITimeoutError) as error:
            raise _Failed(f"no response within {self._settings.timeout:g} s", charged=not _while_connecting(error)) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            what = self._clean(f"{type(cause).__name__}: {cause}")
            raise _Failed(f"the connection failed ({what})", charged=not _while_connecting(error)) from None
        except openai.APIStatusError as error:
            raise self._status(error) from None
        except (ValueError, RecursionError):  # JSON or UTF-8 that cannot be decoded
            raise _Failed("the response is not valid JSON", charged=True) from None
        except openai.OpenAIError as error:
            raise _Failed(self._clean(str(error)), charged=True) from None

    def _status(self, error: Any) -> Exception:
        """What a response with an HTTP error comes to."""
        said = self._clean(_said(error))
        status = int(error.status_code)
        where = f"{self.name} at {self.url}"
        if status == 429 and error.code == "insufficient_quota":
            return ModelUnavailable(f"the account's quota is used up, says {where}: {said}")
        if worth_another_try(status):
            return _Failed(f"HTTP {status}, {said}", wait=asked_to_wait(error.response.headers))
        if status in (401, 403):
            return ModelUnavailable(
                f"{where} does not let us in (HTTP {status}): {said} Check the key in the environment variable {KEY_VARIABLE}."
            )
        if status in (404, 405):
            return Missing(f"nothing answers for {where} (HTTP {status}): {said} Check the model's name and model.base_url.")
        parameter = error.param if isinstance(error.param, str) else None
        return Refused(f"{where} refuses a request (HTTP {status}): {said}", said, parameter)

    def _settle(self, charge: Charge, data: object, size: int) -> None:
        found = bill(data)
        if found is not None:
            self._learn(found.prompt_tokens, charge.prompt_tokens, size)
            charge.settle(found.prompt_tokens, found.generated_tokens)
        elif isinstance(data, Mapping) and not data.get("choices"):
            charge.settle(0, 0)  # an error in the clothes of a success
        else:
            # Nobody tells: the prompt as it was thought, and no more tokens than the reply has bytes.
            charge.settle(charge.prompt_tokens, min(charge.generated_tokens, _size(data)), billed=False)

    def _learn(self, tokens: int, expected: int, size: int) -> None:
        """Expect what was seen: the most tokens a byte, with a margin."""
        if size >= ENOUGH:
            self._ratio = max(self._ratio or 0.0, MARGIN * tokens / size)
        elif tokens > expected:
            self._ratio = max(self._ratio or FIRST_RATIO, MARGIN * tokens / (size + OVERHEAD))

    def _clean(self, text: str) -> str:
        """``text`` of a server, on one line and without the key, which some repeat."""
        text = " ".join(text.split())
        if self._secret:
            text = text.replace(self._secret, "***")
        return text if len(text) <= 500 else text[:499] + "…"


def _tries(failures: int) -> str:
    return "tried once" if failures == 1 else f"tried {failures} times, at last"


def _said(error: Any) -> str:
    """The server's own words, from the usual places."""
    body = error.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        if isinstance(inner, Mapping):
            inner = inner.get("message") or inner.get("detail") or dict(inner)
        return str(inner)
    return str(body or error.message or "no reason given")


def _while_connecting(error: BaseException) -> bool:
    """Whether the server cannot have seen the request."""
    return type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout")


def _most_generated(body: Mapping[str, Any]) -> int:
    limit = body.get("max_tokens", body.get("max_completion_tokens", 0))
    return int(limit) * int(body.get("n", 1))


def _size(value: object) -> int:
    """Bytes of all texts inside."""
    if isinstance(value, str):
        return len(value.encode("utf-8", errors="replace"))
    if isinstance(value, Mapping):
        return sum(_size(item) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(_size(item) for item in value)
    return 0
