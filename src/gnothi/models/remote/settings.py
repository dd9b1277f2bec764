"""What ``--set model.NAME=VALUE`` takes for models behind an API."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from gnothi.errors import InvalidSetting, UnknownName, shown
from gnothi.models.settings import CallCache
from gnothi.models.switches import Thinking

# The usual servers by name: an address and where its key is, nothing else. What a server can do is found out, not listed.
OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Server:
    """``address`` is where it is asked unless the setting ``model.base_url`` or the environment variable ``variable`` says
    otherwise. ``key`` is the variable that holds its key, empty for one that takes none, ``header`` the one that it is sent
    in. ``versioned`` names a query parameter and the variable that holds its value, where one is set; the address then ends
    with ``versioned_path``, else with ``path``. ``{model}`` in it is the model's name."""

    address: str = ""
    variable: str = ""
    key: str = ""
    header: str = "Authorization"
    path: str = ""
    versioned: tuple[str, str] | None = None
    versioned_path: str = ""


SERVERS = {
    "openai": Server(OPENAI, "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "ollama": Server("http://127.0.0.1:11434/v1"),
    "lmstudio": Server("http://127.0.0.1:1234/v1"),
    "azure": Server(
        variable="AZURE_OPENAI_ENDPOINT",
        key="AZURE_OPENAI_API_KEY",
        header="api-key",
        path="/openai/v1",
        versioned=("api-version", "OPENAI_API_VERSION"),
        versioned_path="/openai/deployments/{model}",
    ),
}


Endpoint = Literal["auto", "chat", "completions"]
Scoring = Literal["auto", "echo", "choice", "off"]

KEY_VARIABLE = SERVERS["openai"].key
CONTINUING: Mapping[str, Any] = {"continue_final_message": True, "add_generation_prompt": False}
"""How vLLM and others are told to go on with the assistant's begun turn."""
OPTIONAL = frozenset(
    {"max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "stop", "seed", "random_seed", "n"}
    | {"logprobs", "top_logprobs", "echo", *CONTINUING}
)
"""Fields that a server may refuse while the rest of the request makes sense."""
_SECRET = re.compile(
    r"(api|access|secret|private|auth|bearer)[-_ ]?(key|token)|^(key|token)$|authori[sz]ation|passw|secret", re.IGNORECASE
)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class RemoteSettings(CallCache):
    """Settings of models behind an OpenAI-compatible API."""

    server: ClassVar[Server] = SERVERS["openai"]
    settable: ClassVar[bool] = True
    """Whether a user can set them, so that errors may say which one helps."""

    base_url: str = field(
        default="",
        metadata={
            "help": "address of the API, with its /v1; without it OPENAI_BASE_URL (openai:), else the server's usual one"
        },
    )
    endpoint: Endpoint = field(
        default="auto", metadata={"help": "which endpoint is asked; auto tries chat, then (legacy) completions"}
    )
    thinking: Thinking = field(
        default="off",
        metadata={
            "help": "whether a model that can think before it answers does: off, on, or an effort (low, medium, high ...). A "
            "trial shows what the server does: the output says if a model thinks despite off, or shows no thought despite on"
        },
    )
    thinking_tokens: int = field(
        default=4096, metadata={"help": "tokens for thoughts, in addition to the answer's, while a model thinks"}
    )
    renderer: Literal["plain", "tagged"] = field(
        default="plain", metadata={"help": "how prompts become text for the completions endpoint"}
    )
    prefill: Literal["auto", "assistant", "text"] = field(
        default="auto",
        metadata={
            "help": "how a chat shows the answer so far: as the beginning of the assistant's turn, which the server must "
            "continue, or as text in the user's turn; auto finds out by a trial"
        },
    )
    logprobs: Literal["auto", "on", "off"] = field(
        default="auto", metadata={"help": "whether log-probabilities are asked for; auto finds out by a trial"}
    )
    scoring: Scoring = field(
        default="auto",
        metadata={
            "help": "how given texts are scored: echo (completions that echo the prompt), choice (of one token, by its "
            "top log-probabilities), off; auto is echo where a trial shows it"
        },
    )
    extra: str = field(default="", metadata={"help": "more fields of every request, as a JSON object"})
    headers: tuple[str, ...] = field(
        default=(),
        metadata={"help": "headers of every request, each as NAME=VARIABLE, the environment variable that holds its value"},
    )
    query: tuple[str, ...] = field(
        default=(), metadata={"help": "query parameters of every request, each as NAME=VARIABLE, an environment variable"}
    )
    leave_out: tuple[str, ...] = field(
        default=(), metadata={"help": "fields of requests that the server cannot handle: seed, top_k, stop, n, ..."}
    )
    concurrency: int = field(default=16, metadata={"help": "requests under way at a time", "execution": True})
    timeout: float = field(default=120.0, metadata={"help": "seconds until a request is given up", "execution": True})
    retries: int = field(
        default=6, metadata={"help": "further tries after a request failed (429, 5xx, time-out, dropped)", "execution": True}
    )
    max_wait: float = field(
        default=120.0,
        metadata={
            "help": "longest wait, in seconds, that a server may ask for; else the request is given up",
            "execution": True,
        },
    )
    price_in: float | None = field(
        default=None, metadata={"help": "price of a million prompt tokens, for --max-cost", "execution": True}
    )
    price_out: float | None = field(default=None, metadata={"help": "price of a million generated tokens", "execution": True})

    def __post_init__(self) -> None:
        _check_url(self.base_url.strip(), "setting 'model.base_url'")
        problems = {
            "thinking_tokens": (self.thinking_tokens >= 0, "0 or more"),
            "concurrency": (self.concurrency >= 1, "at least 1"),
            "timeout": (self.timeout > 0, "more than 0"),
            "retries": (self.retries >= 0, "0 or more"),
            "max_wait": (self.max_wait >= 0, "0 or more"),
            "price_in": (self.price_in is None or self.price_in >= 0, "0 or more"),
            "price_out": (self.price_out is None or self.price_out >= 0, "0 or more"),
        }
        for name, (fine, expected) in problems.items():
            if not fine:
                raise InvalidSetting(f"setting 'model.{name}': got {getattr(self, name)!r}, expected {expected}.")
        for name in self.leave_out:
            if name not in OPTIONAL:
                raise UnknownName("field in setting 'model.leave_out'", name, OPTIONAL)
        self.more()
        self.values("headers")
        self.values("query")

    def more(self) -> dict[str, Any]:
        """``extra`` as a mapping. Raises InvalidSetting."""
        if not self.extra.strip():
            return {}
        try:
            extra = json.loads(self.extra)
        except (ValueError, RecursionError):
            extra = None
        if not isinstance(extra, dict):  # what was given is not repeated: it may hold a key
            raise InvalidSetting(
                "setting 'model.extra': got something else, expected a JSON object, as in "
                """--set 'model.extra={"service_tier": "flex"}'."""
            )
        if (name := _secret(extra, os.environ.get(KEY_VARIABLE, "").strip())) is not None:
            raise InvalidSetting(
                f"setting 'model.extra': the field {shown(name)} holds a secret, which runs would record. "
                f"Give the key in the environment variable {KEY_VARIABLE}; one that goes into another header in a variable "
                "that <--set model.headers=NAME=VARIABLE> names."
            )
        return extra

    def values(self, which: Literal["headers", "query"]) -> dict[str, str]:
        """The headers or the query parameters with their values. Raises InvalidSetting, which repeats none of them."""
        values = {}
        for item in getattr(self, which):
            name, equals, variable = (part.strip() for part in item.partition("="))
            if not (equals and _HEADER.fullmatch(name) and _VARIABLE.fullmatch(variable)):
                raise InvalidSetting(
                    f"setting 'model.{which}': got something else, expected NAME=VARIABLE, the name of an environment variable "
                    f"that holds the value, as in <--set model.{which}={_EXAMPLES[which]}>."
                )
            value = os.environ.get(variable, "").strip()
            if not value or not (value.isascii() and value.isprintable()):
                raise InvalidSetting(
                    f"setting 'model.{which}': what is given for {name!r} names no environment variable that holds a value "
                    f"on one line. Expected the variable's name, as in {_EXAMPLES[which]}, and the value in it."
                )
            values[name] = value
        return values

    def located(self, environ: Mapping[str, str] | None = None) -> RemoteSettings:
        """With the address that counts: the setting, else that of the environment, else the server's usual one."""
        if self.base_url:
            return replace(self, base_url=self.base_url.strip().rstrip("/"))
        environ, server = os.environ if environ is None else environ, self.server
        address = environ.get(server.variable, "").strip().rstrip("/") if server.variable else ""
        if address:
            _check_url(address, f"environment variable {server.variable}")
            versioned = server.versioned and environ.get(server.versioned[1], "").strip()
            address += server.versioned_path if versioned else server.path
        if not (address or server.address):
            raise InvalidSetting(
                f"the model's address: got none, expected it in the environment variable {server.variable}, or as "
                "<--set model.base_url=https://...>."
            )
        return replace(self, base_url=address or server.address)

    def identity(self) -> dict[str, Any]:
        """The settings that replies may depend on."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if not item.metadata.get("execution")}
        return {**values, **{name: sorted(getattr(self, name)) for name in ("leave_out", "headers", "query")}}


_EXAMPLES = {"headers": "api-key=AZURE_OPENAI_API_KEY", "query": "api-version=OPENAI_API_VERSION"}


def _secret(value: object, key: str, field: str = "") -> str | None:
    """The name of the first field inside that holds the ``key``, or by its name a secret."""
    if isinstance(value, str) and ((key and key in value) or (value and _SECRET.search(field))):
        return field
    if isinstance(value, dict):
        inner: list[tuple[str, object]] = list(value.items())
    else:
        inner = [(field, one) for one in value] if isinstance(value, list) else []
    return next((found for name, one in inner if (found := _secret(one, key, name)) is not None), None)


def _check_url(url: str, where: str) -> None:
    """Refuse what is no address or holds a secret; the message repeats neither."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise InvalidSetting(f"{where}: expected an address as in http://127.0.0.1:8000/v1.") from None
    if "@" in url or parts.query or parts.fragment:
        raise InvalidSetting(
            f"{where}: the address holds a user, a password or a query, which runs would record; expected one as in "
            f"http://127.0.0.1:8000/v1, the key in the environment variable {KEY_VARIABLE}, and the values of a query in "
            f"variables that <--set model.query=NAME=VARIABLE> names, as in {_EXAMPLES['query']}."
        )
    if not fine:
        raise InvalidSetting(f"{where}: got {url!r}, expected an address as in http://127.0.0.1:8000/v1.")
