"""One policy for every request: at most so many at a time, within the budget, tried again where that may help.

The official client does the transport; its own retries are off.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from gnothi.errors import GnothiError, InvalidSetting, MissingDependency, ModelUnavailable, UsageError
from gnothi.models.remote import bounded
from gnothi.models.remote.budget import Budget, Charge, Prices
from gnothi.models.remote.credentials import credentials
from gnothi.models.remote.refusals import Refused, read_error, refused_field
from gnothi.models.remote.replies import WITHHELD, InvalidReply, OtherShape, Streamed, bill
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.remote.window import Sizes
from gnothi.retrying import asked_to_wait, backoff, worth_another_try
from gnothi.types import encodable
from gnothi.waiting import waited

T = TypeVar("T")

CONNECT_SECONDS = 10.0
RESULTS = ("choices", "data", "results")
"""Where a reply holds what was asked for."""
STREAMED = re.compile(
    r"\bonly\b.{0,40}\bstream|\bstream\w*\W+(\w+ ){0,4}(required|only|true)|non-?stream\w* (\w+ ){0,4}not", re.IGNORECASE
)
"""In the words of a server that answers in streams alone."""
UNBEARABLE = re.compile(r"parameter|provider", re.IGNORECASE)
"""In the words of a 404 that is about what a request asks for, not about the model."""


class Missing(ModelUnavailable):
    """The server has no such model or endpoint."""


class Denied(ModelUnavailable):
    """The key does not open this."""


class Broken(ModelUnavailable):
    """The server fails at a request, try after try, with an internal error."""


class Slow(ModelUnavailable):
    """The server does not come to an end in the time that it has."""


SOON = {Slow: 0, Broken: 2}
"""Tries after a first one that failed so, where another request may do better."""


class _Failed(Exception):
    """A try that may be followed by another. ``wait`` is what the server asked for; ``charged`` says whether it may have
    done the work; ``kind`` is what is raised where no further try follows."""

    def __init__(
        self, what: str, *, wait: float | None = None, charged: bool = False, kind: type[ModelUnavailable] = ModelUnavailable
    ) -> None:
        super().__init__(what)
        self.wait = wait
        self.charged = charged
        self.kind = kind


class Client:
    """Sends requests of one model. Bound to the event loop that it is first used in."""

    def __init__(self, name: str, settings: RemoteSettings, budget: Budget) -> None:
        """``settings`` are located. Raises MissingDependency, or ModelUnavailable where OpenAI is meant and no key is there."""
        try:
            import openai
        except ImportError as error:
            raise MissingDependency("openai", "openai", "a model behind an API") from error
        sent = credentials(name, settings)
        self.name = name
        self.url = settings.base_url.replace("{model}", quote(name.partition(":")[2], safe=""))
        self.budget = budget
        self._settings = settings
        self._secrets = sent.secrets
        self._prices = Prices(settings.price_in, settings.price_out)
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._pause_until = 0.0
        self.sizes = Sizes()
        try:
            self._client = openai.AsyncOpenAI(
                api_key=sent.key,
                base_url=self.url,
                default_headers=sent.headers,
                default_query=sent.query,
                max_retries=0,
                timeout=openai.Timeout(settings.timeout, connect=min(CONNECT_SECONDS, settings.timeout)),
                http_client=bounded.client(self.url, sent.names, sent.unsent),
            )
        except bounded.invalid_url() as error:
            raise InvalidSetting(
                f"the address of model {name!r}: got {self.url!r} ({error}), expected one as in http://127.0.0.1:8000/v1."
            ) from None

    async def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        parse: Callable[[object], T],
        retries: int | None = None,
        hurried: bool = False,
    ) -> T:
        """POST ``body`` and read the response with ``parse``, which raises InvalidReply for what is no answer. ``hurried``: a
        request that takes too long, or that the server breaks at, is soon given up, for another one may do better.

        Raises Refused, ModelUnavailable (after all tries, or at once where no try can help) or BudgetSpent.
        """
        most = self._settings.retries
        return await self._persist(
            lambda: self._paid(path, body, parse), most if retries is None else min(retries, most), hurried
        )

    async def look(self, path: str, retries: int) -> object:
        """GET, which costs nothing: the JSON of the response. Raises as ``ask``."""
        retries = min(retries, self._settings.retries)
        try:
            return await self._persist(lambda: self._send(lambda: self._client.get(path, cast_to=object), {}), retries)
        except OtherShape as error:  # a page for people, say
            raise Missing(f"nothing to read at {path} of {self.name} at {self.url}: {error}.") from None

    async def aclose(self) -> None:
        await self._client.close()

    # --- trying again ------------------------------------------------------------------------------------------------

    async def _persist(self, attempt: Callable[[], Awaitable[T]], retries: int, hurried: bool = False) -> T:
        failures = 0
        while True:
            await self._pause()
            queued, started = time.perf_counter(), None
            try:
                async with self._slots:
                    started = time.perf_counter()
                    return await attempt()
            except _Failed as failed:
                failures += 1
                most = min(retries, SOON.get(failed.kind, retries)) if hurried else retries
                if (advice := self._hopeless(failed, failures, most)) is not None:
                    raise failed.kind(
                        f"no usable answer from {self.name} at {self.url}, {_tries(failures)}: {failed}. {advice}"
                    ) from None
                wait = failed.wait
            finally:
                waited(queued, started, time.perf_counter())
            if wait is not None:
                # What the server asks of one request holds for all.
                self._pause_until = max(self._pause_until, time.monotonic() + wait)
            await asyncio.sleep(backoff(failures) if wait is None else wait + backoff(1))

    def _hopeless(self, failed: _Failed, failures: int, retries: int) -> str | None:
        """What to do about it, where another try makes no sense."""
        longest = self._settings.max_wait
        if not self._settings.settable:
            too_long = failed.wait is not None and failed.wait > longest
            return "Look at the server, then try again." if too_long or failures > retries else None
        if failed.wait is not None and failed.wait > longest:
            return f"It asks to wait {failed.wait:.0f} s, longer than <--set model.max_wait={longest:g}> allows."
        if failures > retries:
            return "Look at the server, or try longer with <--set model.retries=...> and <--set model.timeout=...>"
        return None

    async def _pause(self) -> None:
        while (remaining := self._pause_until - time.monotonic()) > 0:  # noqa: ASYNC110 - it may be moved while we sleep
            await asyncio.sleep(remaining)

    # --- one try -----------------------------------------------------------------------------------------------------

    async def _paid(self, path: str, body: Mapping[str, Any], parse: Callable[[object], T]) -> T:
        body = json.loads(encodable(json.dumps(dict(body), ensure_ascii=False)))
        size = _size(body)
        generated = _most_generated(body)
        bounded.longest.set(bounded.bound(generated, size))
        charge = await self.budget.reserve(self.sizes.expected(size), generated, self._prices)
        try:
            data = await self._send(lambda: self._client.post(path, cast_to=object, body=body), body)
            self._settle(charge, data, size)
            if isinstance(data, Mapping) and data.get("error") and not data.get("choices"):
                raise self._refusal(_status_inside(data["error"]), data, body, {})
            return parse(data)
        except Streamed as error:
            raise self._streams(f"{self._clean(str(error))}.") from None
        except OtherShape as error:
            raise ModelUnavailable(
                f"{self.name} at {self.url} answers in a form that is not OpenAI's: {self._clean(str(error))}. "
                f"Look at {self._address}, which must lead to an OpenAI-compatible interface (often one with /v1)."
            ) from None
        except InvalidReply as error:
            raise _Failed(self._clean(str(error))) from None
        except (GnothiError, _Failed) as error:
            if not charge.settled and not getattr(error, "charged", False):
                charge.settle(0, 0)
            raise
        finally:
            self.budget.close(charge)

    async def _send(self, request: Callable[[], Awaitable[object]], body: Mapping[str, Any]) -> object:
        import openai

        try:
            async with asyncio.timeout(self._settings.timeout):
                data = await request()
            if isinstance(data, str) and data.lstrip().startswith(("<", "data:", "event:")):
                shape = OtherShape if data.lstrip().startswith("<") else Streamed
                raise shape(f"expected JSON, got {data.strip()[:100]!r}")
            return json.loads(data) if isinstance(data, str) else data
        except bounded.TooLong as error:
            raise _Failed(str(error), charged=True) from None
        except (TimeoutError, openai.APITimeoutError) as error:
            what, connected = f"no response within {self._settings.timeout:g} s", not _while_connecting(error)
            raise _Failed(what, charged=connected, kind=Slow if connected else ModelUnavailable) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            what = self._clean(f"{type(cause).__name__}: {cause}")
            raise _Failed(f"the connection failed ({what})", charged=not _while_connecting(error)) from None
        except openai.APIStatusError as error:
            raise self._refusal(int(error.status_code), _content(error), body, error.response.headers) from None
        except (ValueError, RecursionError):  # JSON or UTF-8 that cannot be decoded
            raise _Failed("the response is not valid JSON", charged=True, kind=ModelUnavailable if body else Missing) from None
        except openai.OpenAIError as error:
            raise _Failed(self._clean(str(error)), charged=True) from None

    def _refusal(self, status: int, content: object, body: Mapping[str, Any], headers: Mapping[str, str]) -> Exception:
        """What a response with an HTTP error, or with an error in the clothes of a success, comes to."""
        error = read_error(content)
        reason = self._clean(error.reason)
        sentence = reason if reason.endswith((".", "!", "?", "…")) else f"{reason}."
        where = f"{self.name} at {self.url}"
        refused = Refused(f"{where} refuses a request (HTTP {status}): {reason}", reason, error.parameters, status)
        if status == 402 or "insufficient_quota" in _codes(content):
            return ModelUnavailable(f"the account's quota is used up, says {where}: {reason}")
        if "content_filter" in _codes(content) or "responsibleaipolicyviolation" in _codes(content):
            return UsageError(WITHHELD)
        if status == 501:
            return refused
        if worth_another_try(status):
            kind = Broken if status == 500 else ModelUnavailable
            return _Failed(f"HTTP {status}, {reason}", wait=asked_to_wait(headers, reason), kind=kind)
        if status in (401, 403) and not (status == 403 and refused_field(refused, body)):
            header = (
                "; a server that wants it in another header than Authorization takes <--set model.headers=NAME=VARIABLE>"
                if self._settings.settable
                else ""
            )
            return Denied(f"{where} denies access (HTTP {status}): {sentence} Check the key{self._key_from}{header}.")
        if status in (404, 405) and not (body and UNBEARABLE.search(reason)):
            return Missing(
                f"nothing answers for {where} (HTTP {status}): {sentence} Check the model's name and {self._address}."
            )
        streams = STREAMED.search(reason) and "think" not in reason.lower() and refused_field(refused, body) is None
        return self._streams(sentence) if streams else refused

    def _streams(self, sentence: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self.name} at {self.url} answers in streams alone: {sentence} Gnothi asks for whole replies: change "
            "that at the server, put a gateway before it that gathers its streams, or use another model."
        )

    @property
    def _address(self) -> str:
        """What a user has given it as."""
        return "model.base_url" if self._settings.settable else "its address"

    @property
    def _key_from(self) -> str:
        variable = self._settings.server.key
        return f" in the environment variable {variable}" if variable else ""

    def _settle(self, charge: Charge, data: object, size: int) -> None:
        usage = bill(data)
        if usage is not None:
            expected = self.sizes.learn(usage.prompt_tokens, size)
            if expected is not None and self.sizes.cut == 1:
                logging.getLogger("gnothi").warning(
                    "warning: %s counted %s prompt tokens where some %s were sent: it seems to cut prompts%s, so answers may "
                    "miss the instruction, examples or passages. Give it a longer window, or it fewer passages.",
                    self.name,
                    f"{usage.prompt_tokens:,}",
                    f"{expected:,}",
                    f" (its window: {self.sizes.window:,})" if self.sizes.window else "",
                )
            charge.settle(usage.prompt_tokens, usage.generated_tokens)
        elif isinstance(data, Mapping) and not any(data.get(name) for name in RESULTS):
            charge.settle(0, 0)  # an error in the clothes of a success
        else:
            # Nobody tells: the prompt as it was thought, and no more tokens than the reply has bytes.
            charge.settle(charge.prompt_tokens, min(charge.generated_tokens, _size(data)), billed=False)

    def _clean(self, text: str) -> str:
        """``text`` of a server, on one line and without the key, which some repeat."""
        text = " ".join(encodable(text).split())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text if len(text) <= 500 else text[:499] + "…"


def _tries(failures: int) -> str:
    return "tried once" if failures == 1 else f"tried {failures} times, at last"


def _content(error: Any) -> object:
    """The whole body of a response with an HTTP error."""
    try:
        return error.response.json()
    except (ValueError, RecursionError, RuntimeError):
        return error.body or error.message


def _status_inside(error: object) -> int:
    """The HTTP status that an error in the clothes of a success names; else one that is worth another try, unless it is said
    to be about the request."""
    code = error.get("code", error.get("status")) if isinstance(error, Mapping) else None
    if isinstance(code, int | str) and str(code).isdecimal() and 400 <= int(code) < 600:
        return int(code)
    kind = str(error.get("type") or code or "") if isinstance(error, Mapping) else ""
    return 400 if re.search("invalid|unsupported|bad_?request|not_supported", kind, re.IGNORECASE) else 500


def _codes(content: object) -> str:
    """All codes and types inside, in small letters."""
    if isinstance(content, Mapping):
        own = " ".join(str(content.get(name) or "") for name in ("code", "type"))
        return " ".join([own.lower(), *map(_codes, content.values())])
    return ""


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
