"""How a server answers, apart from what: ``[server]`` in a file, ``--set server.KEY=VALUE`` on the command line."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gnothi.errors import InvalidSetting
from gnothi.fields import check_ranges, setting


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Sizes are in bytes and characters, times in seconds."""

    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8000, "Port to listen on (0: any that is free).", at_least=0, at_most=65535)
    public_url: str | None = setting(None, "How clients reach this server, for links (none: as they asked for it).")
    keys: Path | None = setting(None, "File of keys, made by `gnothi keys`; without one nobody needs a key.")
    anyone: bool = setting(False, "Answer anyone, without keys, on an address that others reach, too.")
    origins: tuple[str, ...] = setting((), "Web pages of other origins that may ask, as https://chat.example.org (CORS).")
    runs: Path | None = setting(None, "Folder of runs whose reports are shown under /runs.")
    feedback: Path | None = setting(None, "File that judgements of answers are added to; without one none are taken.")
    feedback_content: bool = setting(False, "Write questions and answers to that file, too.")
    slots: int | None = setting(None, "Questions answered at a time (none: as many as the models gain from).", at_least=1)
    waiting: int = setting(64, "Questions that may wait for their turn; those beyond get status 429.", at_least=0)
    timeout: float = setting(120.0, "Longest time for one question, waiting included; then status 504.", at_least=0.01)
    connections: int | None = setting(
        None,
        "Connections at a time (none: as many as the open files allow); of those without a request, the oldest make room.",
        at_least=1,
    )
    client_timeout: float = setting(
        30.0, "Longest time for a client to send a whole request, and to take what it is sent.", at_least=0.01
    )
    heartbeat: float = setting(10.0, "A stream without news says every so often that it lives.", at_least=0.01)
    grace: float = setting(30.0, "Time for streams to finish when the server is told to stop.", at_least=0)
    drain: float = setting(0.0, "Time between not being ready and not listening any more, for balancers.", at_least=0)
    max_body: int = setting(524_288, "Longest body of a request.", at_least=1)
    max_question: int = setting(8_000, "Longest question or query.", at_least=1)
    follow_ups: Literal["rewrite", "last"] = setting(
        "rewrite", "Within a conversation: make the last question stand alone by one model call, or take it as it is."
    )
    link_seconds: float = setting(3600.0, "How long links to passages are valid.", at_least=1)
    log_content: bool = setting(False, "Write questions and answers to the log, and why something failed.")
    telemetry: bool = setting(False, "Send OpenTelemetry spans to where the variables OTEL_EXPORTER_OTLP_... say.")
    telemetry_content: bool = setting(False, "Put questions, answers and passages into the spans.")

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.public_url is not None and not self.public_url.startswith(("http://", "https://")):
            raise InvalidSetting(f"setting 'server.public_url': got {self.public_url!r}, expected http://... or https://...")

    def check_exposure(self) -> None:
        """Raise InvalidSetting where others could ask without a key and nobody said that they may."""
        if not self.loopback and self.keys is None and not self.anyone:
            raise InvalidSetting(
                f"setting 'server.host': got {self.host!r}, which other machines reach, and no keys. Make one with `gnothi "
                "keys keys.json --add NAME` and give <--keys keys.json>, or let anyone ask: "
                "<--set server.anyone=true>."
            )

    @property
    def loopback(self) -> bool:
        """Whether this machine alone reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
