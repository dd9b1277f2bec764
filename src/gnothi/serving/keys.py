"""Keys: kept as digests in a file, each with a rate and a budget; and what has been spent, in a file beside it."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from gnothi.errors import MALFORMED, BudgetSpent, InvalidInput, InvalidSetting, UnknownName
from gnothi.events import Event, ModelCall
from gnothi.locks import hold
from gnothi.models.remote.budget import Budget, Charge, Prices
from gnothi.runs.journal import replace_file
from gnothi.serving.failures import Refusal, busy

VERSION = 1
MARK = "gn-"
WRITE_SECONDS = 5.0
ANYONE = "anyone"
"""Who asks where nobody needs a key."""
_NAME = re.compile(r"[\w.@-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Key:
    """``digest`` is the SHA-256 of the key, which is kept nowhere. Limits: questions a minute, tokens and cost of its life."""

    name: str
    digest: str
    created: str
    per_minute: float | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    revoked: str | None = None


def read(file: Path) -> list[Key]:
    """Raises InvalidInput for a file that holds no keys."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ValueError(f"it is of version {data['version']!r:.80}, not {VERSION}")
        return [_key(one) for one in data["keys"]]
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no file of keys {file}. Make a key, and the file with it: gnothi keys {file} --add NAME"
        ) from None
    except (OSError, *MALFORMED) as error:
        raise InvalidInput(
            f"cannot read the keys in {file}: {_why(error)}. Expected a file made by `gnothi keys`. Restore it, or make new "
            "keys in another file."
        ) from None


def _why(error: Exception) -> str:
    """What is wrong with a file, in words; what taking its data apart raised tells users nothing."""
    return f"{error!s:.200}".rstrip(".") if isinstance(error, OSError | ValueError) else "a part is missing or of another kind"


def _key(table: Mapping[str, Any]) -> Key:
    """Raises one of MALFORMED for what is no key."""
    key = Key(**{item.name: table[item.name] for item in fields(Key) if item.name in table})
    if not all(isinstance(one, str) for one in (key.name, key.digest, key.created, key.revoked or "")):
        raise ValueError("the name, digest or date of a key is no text")
    if not _NAME.fullmatch(key.name):
        raise ValueError(f"{key.name!r:.80} is no name of a key")
    if not all(one is None or _is_amount(one) for one in (key.per_minute, key.max_tokens, key.max_cost)):
        raise ValueError(f"a limit of the key {key.name} is no number")
    return key


def _is_amount(one: object) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) and one >= 0


def add(file: Path, name: str, **limits: Any) -> str:
    """Make a key and return it: it is shown this once. Raises InvalidInput, or InvalidSetting for a name that is taken."""
    if not _NAME.fullmatch(name):
        raise InvalidSetting(f"a key's name: got {name!r:.80}, expected up to 64 letters, digits and any of . @ _ -")
    secret = MARK + secrets.token_urlsafe(32)
    with _writing(file):
        keys = read(file) if file.exists() else []
        if any(one.name == name for one in keys):
            raise InvalidSetting(
                f"a key's name: got {name!r}, which another key has or had. Choose one of your own for each key."
            )
        _write(file, [*keys, Key(name, digest(secret), _now(), **limits)])
    return secret


def revoke(file: Path, name: str) -> None:
    """A server that runs refuses it from the next question on. Raises UnknownName or InvalidInput."""
    read(file)  # before a lock is made beside what is not there
    with _writing(file):
        keys = read(file)
        if not any(one.name == name for one in keys):
            raise UnknownName("key", name, [one.name for one in keys])
        _write(file, [replace(one, revoked=_now()) if one.name == name and not one.revoked else one for one in keys])


def spent(file: Path) -> dict[str, dict[str, float]]:
    """Name of a key -> tokens and cost so far; empty where nothing was spent. Raises InvalidInput for damaged books."""
    books = _books(file)
    try:
        amounts = json.loads(books.read_text(encoding="utf-8"))
        if not all(_is_amount(amount) for one in amounts.values() for amount in one.values()):
            raise ValueError("an amount is no number")
        return dict(amounts)
    except FileNotFoundError:
        return {}
    except (OSError, *MALFORMED) as error:
        raise InvalidInput(
            f"{books} does not say what the keys have spent ({_why(error)}). Expected a file that `gnothi serve` "
            "wrote. Restore it; if you delete it, every key has its whole budget again."
        ) from None


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


@dataclass
class Account:
    """Who asks: a key's limits and what is left of them. ``prices`` by the name of the model that is called."""

    name: str = ANYONE
    per_minute: float | None = None
    budget: Budget = field(default_factory=Budget)
    prices: Mapping[str, Prices] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    _remaining: float | None = None
    _at: float = 0.0

    def admit(self) -> None:
        """Count one question. Raises Refusal where there were too many in the last minute, or the budget is spent."""
        if self.budget.spent:
            raise Refusal(429, "The budget of this key is spent.", "insufficient_quota", "insufficient_quota")
        if self.per_minute is None:
            return
        now, most = self.clock(), max(1.0, self.per_minute)
        remaining = most if self._remaining is None else min(most, self._remaining + (now - self._at) * self.per_minute / 60)
        self._at, self._remaining = now, remaining
        if remaining < 1:
            raise busy(f"This key may ask {self.per_minute:g} questions a minute.", (1 - remaining) * 60 / self.per_minute)
        self._remaining = remaining - 1

    def __call__(self, event: Event) -> None:
        """Enter a model's call into the books, as a listener. Raises BudgetSpent where it was one too many: at most what was
        under way at that moment is spent beyond the limit."""
        if isinstance(event, ModelCall) and not event.cached:
            prices = self.prices.get(event.model, Prices(0, 0))
            self.budget.close(Charge(event.prompt_tokens, event.generated_tokens, prices, settled=True, billed=True))
            if self.budget.overdrawn:
                raise BudgetSpent("the budget of this key is spent.")


class Keys:
    """Those of a file, read anew when it changes. Books are written every few seconds, and by ``close``; until then, no other
    server can use the file."""

    def __init__(self, file: Path, prices: Mapping[str, Prices] | None = None) -> None:
        """Raises InvalidInput, or InvalidSetting where another server has the file."""
        self._file, self._prices = file, dict(prices or {})
        self._accounts: dict[str, tuple[Key, Account]] = {}
        self._stamp: tuple[int, int] | None = None
        self._saved_at = 0.0
        self._saved: dict[str, float] = {}
        self._read()
        self._lock: ExitStack = hold(
            file.with_name(file.name + ".spent.lock"),
            InvalidSetting,
            f"<--keys>: another server counts what the keys of {file} spend. Give each server a file of its own.",
        )

    def account(self, header: str | None) -> Account:
        """By ``Authorization``. Raises Refusal (401)."""
        self._read()
        scheme, _, secret = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise _denied("This server wants a key: send it as the header Authorization: Bearer KEY.")
        hashed, match = digest(secret.strip()), None
        for key, account in self._accounts.values():  # all of them, so that the time tells nothing
            if hmac.compare_digest(key.digest, hashed):
                match = key, account
        if match is None:
            raise _denied("This key is not known here.")
        if match[0].revoked:
            raise _denied("This key was revoked.")
        return match[1]

    def keep(self, *, now: bool = False) -> None:
        """Write down what was spent, if it is time or ``now``."""
        books = {name: one.budget.tokens for name, (_, one) in self._accounts.items()}
        if (now or time.monotonic() - self._saved_at > WRITE_SECONDS) and books != self._saved:
            self._saved_at, self._saved = time.monotonic(), dict(books)
            content = {
                name: {"tokens": one.budget.tokens, "cost": one.budget.cost} for name, (_, one) in self._accounts.items()
            }
            replace_file(_books(self._file), json.dumps(content, indent=1) + "\n")

    def close(self) -> None:
        self.keep(now=True)
        self._lock.close()

    def _read(self) -> None:
        """A file that cannot be read leaves the keys as they were, unless there are none yet."""
        try:
            status = self._file.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp == self._stamp:
                return
            keys, before = read(self._file), spent(self._file)
        except (OSError, InvalidInput):
            if self._stamp is None:
                read(self._file)
                spent(self._file)
            return
        self._stamp = stamp
        self._accounts = {key.name: (key, self._account(key, before.get(key.name, {}))) for key in keys}

    def _account(self, key: Key, before: Mapping[str, float]) -> Account:
        """The key's account with the limits that it has now, and what was spent before."""
        _, account = self._accounts.get(key.name, (key, None))
        if account is None:
            account = Account(key.name, prices=self._prices)
            account.budget.prompt_tokens = int(before.get("tokens", 0))
            account.budget.cost = float(before.get("cost", 0.0))
        account.per_minute = key.per_minute
        account.budget.max_tokens, account.budget.max_cost = key.max_tokens, key.max_cost
        return account


def _denied(message: str) -> Refusal:
    return Refusal(401, message, "authentication_error", "invalid_api_key", headers={"WWW-Authenticate": "Bearer"})


def _books(file: Path) -> Path:
    return file.with_name(file.name + ".spent")


def _writing(file: Path) -> ExitStack:
    file.parent.mkdir(parents=True, exist_ok=True)
    return hold(
        file.with_name(file.name + ".lock"), InvalidSetting, f"another command is changing {file}. Give this one again."
    )


def _write(file: Path, keys: Iterable[Key]) -> None:
    listed = [{name: value for name, value in asdict(one).items() if value is not None} for one in keys]
    replace_file(file, json.dumps({"version": VERSION, "keys": listed}, indent=1) + "\n")
    file.chmod(0o600)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
