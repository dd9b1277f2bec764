"""A server of ours that speaks SearXNG's JSON, and pages beside it that behave as pages do."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio

from gnothi.errors import IndexUnavailable, InvalidSetting, UnknownName
from gnothi.protocols import Retriever
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.registry import open_index
from gnothi.retrieval.servers.searxng import Searxng, server
from gnothi.retrieval.servers.web import Unfetched, anywhere, fetch, is_public
from gnothi.testing.conformance.retriever import CORPUS, EXPECTED, RetrieverConformance
from gnothi.types import Passage
from tests.messages import refused
from tests.patience import PATIENCE

WEB = tuple(Passage(f"https://example.org/{one.id}", one.text, one.title) for one in CORPUS)
ON_A_PAGE = 3
Page = tuple[int, dict[str, str], bytes]


@dataclass
class Fake:
    """``answers`` come first, one a request; then what ``passages`` hold. ``pages`` are what paths give beside /search."""

    passages: tuple[Passage, ...] = WEB
    answers: list[Page] = field(default_factory=list)
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, list[str]], dict[str, str]]] = field(default_factory=list)
    url: str = ""
    ranking: tuple[tuple[Passage, ...], BM25Index] | None = None

    def reply(self, target: str, headers: dict[str, str]) -> Page:
        parts = urlsplit(target)
        query = parse_qs(parts.query)
        self.requests.append((parts.path, query, headers))
        if parts.path != "/search":
            return self.pages.get(parts.path, (404, {}, b"not found"))
        if self.answers:
            return self.answers.pop(0)
        if query["format"] != ["json"]:
            return 200, {"Content-Type": "text/html"}, b"<html>results</html>"
        start = (int(query["pageno"][0]) - 1) * ON_A_PAGE
        if not self.ranking or self.ranking[0] is not self.passages:
            self.ranking = self.passages, BM25Index.in_memory(self.passages)
        found = self.ranking[1].search_blocking(query["q"][0], start + ON_A_PAGE)[start:]
        rows = [{"url": one.passage.id, "title": one.passage.title, "content": one.passage.text, "score": 1} for one in found]
        return 200, {"Content-Type": "application/json"}, json.dumps({"query": query["q"][0], "results": rows}).encode()


@pytest.fixture
def fake() -> Iterator[Fake]:
    state = Fake()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = state.reply(self.path, dict(self.headers))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        state.url = f"http://127.0.0.1:{running.server_address[1]}"
        yield state
        running.shutdown()
        thread.join()


class TestConformance(RetrieverConformance):
    corpus = WEB
    expected = {query: f"https://example.org/{name}" for query, name in EXPECTED.items()}  # noqa: RUF012

    @pytest_asyncio.fixture
    async def retriever(self, fake: Fake) -> AsyncIterator[Retriever]:
        yield open_index(f"searxng:{fake.url}")


def json_page(**said: object) -> Page:
    return 200, {}, json.dumps(said).encode()


async def test_settings_are_sent_and_the_password_is_not_shown(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARXNG_PASSWORD", "s3cret")
    with_user = fake.url.replace("//", "//ann@")
    index = Searxng(server(f"{with_user}?language=de&categories=science&engines=a,b&time_range=year"))
    await index.search("heron", 2)
    path, query, headers = fake.requests[0]
    assert (path, query["q"], query["language"], query["engines"]) == ("/search", ["heron"], ["de"], ["a,b"])
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"ann:s3cret"
    assert index.name == f"searxng:{fake.url}"
    monkeypatch.delenv("SEARXNG_PASSWORD")
    with refused(InvalidSetting):
        Searxng(server(with_user))


async def test_a_file_describes_it(fake: Fake, tmp_path: Path) -> None:
    file = tmp_path / "web.toml"
    file.write_text(f'server = "{fake.url}/search"\nlanguage = "fr"\npages = false\n')
    assert await open_index(f"searxng:{file}").search("heron", 1)
    assert fake.requests[0][1]["language"] == ["fr"]


async def test_what_is_no_result_is_left_out_and_boxes_come_first(fake: Fake) -> None:
    rows = [{"url": "u", "title": "t", "content": None}, {"url": "", "title": "x"}, {"title": "y"}, {"url": "v", "content": ""}]
    box = {"id": "https://w/Orvel", "infobox": "Orvel", "content": "A town."}
    fake.answers = [json_page(results=rows, infoboxes=[box]), json_page(results=[])]
    found = await Searxng(server(fake.url)).search("x", 5)
    assert [(one.passage.id, one.passage.title, one.passage.text) for one in found] == [
        ("https://w/Orvel", "Orvel", "A town."),
        ("u", "t", ""),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        (403, {}, b"Forbidden"),
        (401, {}, b""),
        (404, {}, b""),
        (302, {"Location": "https://other/"}, b""),
        (200, {}, b"<html>"),
        (200, {}, b"[]"),
        (200, {}, b'{"results": [{"url": 5, "title": [1]}]}'),
        (200, {}, b'{"results": 3}'),
        (200, {}, b"[" * 100_000),
        (200, {}, b"\xff\xfe"),
        json_page(results=[], unresponsive_engines=[["bing", "timeout"]]),
        (500, {}, b""),
        (429, {"Retry-After": "7200"}, b""),
    ],
)
async def test_other_answers_say_what_to_do(fake: Fake, answer: Page) -> None:
    fake.answers = [answer]
    with refused(IndexUnavailable):
        await Searxng(server(f"{fake.url}?patience=0")).search("heron", 3)


async def test_what_may_pass_is_tried_again(fake: Fake) -> None:
    fake.answers = [(503, {}, b""), (429, {"Retry-After": "0"}, b"")]
    assert await Searxng(server(fake.url)).search("heron", 1)


async def test_a_server_that_is_not_there() -> None:
    with refused(IndexUnavailable):
        await Searxng(server("http://127.0.0.1:1")).search("heron", 3)


@pytest.mark.parametrize(
    "argument", ["ftp://a", "", "http://", "http://u:p@host", "http://host:99999", "http://a?pages=perhaps"]
)
def test_addresses_that_are_none(argument: str) -> None:
    with pytest.raises(InvalidSetting):
        server(argument)


def test_an_unknown_setting() -> None:
    with refused(UnknownName):
        server("http://a?langauge=de")


HTML = {"Content-Type": "text/html; charset=utf-8"}
HERONS = (
    "<title>Birds</title><nav>menu</nav><script>var herons;</script><h1>Birds</h1><p>"
    + "Nothing of interest is said in this sentence. " * 40
    + "</p><h2>Nests</h2><p>Herons nest in the pines of Orvel.</p>"
).encode()


def reading(fake: Fake, allowed: Callable[[str], bool] = anywhere) -> Searxng:
    fake.passages = (
        Passage(f"{fake.url}/birds", "About herons and nests.", "Birds"),
        Passage(f"{fake.url}/away", "Herons nest on towers.", "Away"),
    )
    return Searxng(server(f"{fake.url}?pages=true"), allowed)


async def test_pages_are_read_where_asked_and_the_best_pieces_kept(fake: Fake) -> None:
    fake.pages = {"/birds": (200, HTML, HERONS)}
    index = reading(fake)
    found = await index.search("Where do herons nest in Orvel?", 2)
    assert found[0].passage.text == "Herons nest in the pines of Orvel."
    assert found[0].passage.title == "Birds > Nests"
    assert found[0].passage.id.startswith(f"{fake.url}/birds#")
    assert found[1].passage.id == f"{fake.url}/away"  # which is not to be had: its result's text
    assert await index.search("Where do herons nest in Orvel?", 1) == found[:1]


@pytest.mark.parametrize(
    "page",
    [
        (200, {"Content-Type": "application/pdf"}, HERONS),
        (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, HERONS),
        (200, {}, HERONS),
        (500, HTML, HERONS),
        (302, {"Location": "/birds"}, b""),
        (302, {"Location": "file:///etc/passwd"}, b""),
        (200, HTML, b"<p>nest</p>" * 300_000),
        (200, HTML, b"\x00\x00nest"),
        (200, HTML, b""),
    ],
)
async def test_of_other_pages_the_results_text_is_kept(fake: Fake, page: Page) -> None:
    fake.pages = {"/birds": page}
    found = await reading(fake).search("About nests", 1)
    assert found[0].passage == Passage(f"{fake.url}/birds", "About herons and nests.", "Birds")


async def test_pages_of_this_machine_are_never_read(fake: Fake) -> None:
    fake.pages = {"/birds": (200, HTML, HERONS)}
    await reading(fake, is_public).search("About nests", 1)
    assert [path for path, *_ in fake.requests] == ["/search"]


def test_every_redirect_is_looked_at(fake: Fake) -> None:
    fake.pages = {"/a": (302, {"Location": fake.url.replace("127.0.0.1", "localhost") + "/b"}, b""), "/b": (200, HTML, b"in")}
    looked: list[str] = []

    def first_only(address: str) -> bool:
        looked.append(address)
        return len(looked) == 1

    with refused(Unfetched):
        fetch(f"{fake.url}/a", allowed=first_only, most=100, seconds=5)
    assert [path for path, *_ in fake.requests] == ["/a"]
    assert fetch(f"{fake.url}/a", allowed=anywhere, most=100, seconds=5).body == b"in"


def test_a_name_is_refused_where_one_of_its_addresses_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in ("93.184.216.34", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    with refused(Unfetched):
        fetch("http://example.org/", allowed=is_public, most=100, seconds=5)


@pytest.mark.parametrize(
    "url",
    [
        *("http://2130706433/", "http://0x7f.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://localhost/"),
        *("http://0/", "file:///etc/passwd", "gopher://a", "http://", "http://a b/", "//x", "http://["),
        "http://" + "a" * 80 + ".b/",
    ],
)
def test_ways_around(url: str) -> None:
    with pytest.raises(Unfetched):
        fetch(url, allowed=is_public, most=100, seconds=5)


@pytest.mark.parametrize(
    ("address", "public"),
    [("93.184.216.34", True), ("2606:2800:220:1:248:1893:25c8:1946", True), ("64:ff9b::5db8:d822", True)]
    + [(one, False) for one in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1")]
    + [(one, False) for one in ("0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fd00::1")]
    + [(one, False) for one in ("::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1", "2001:db8::1")],
)
def test_addresses_of_the_internet(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize("length", ["", "Content-Length: 90\r\n"], ids=["unknown length", "length"])
def test_a_server_that_goes_on_and_on_is_cut_off(length: str) -> None:
    """It sends a byte now and then, so that no single wait is too long."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            client, _ = listening.accept()
            with client, suppress(OSError):
                client.recv(1000)
                client.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{length}\r\n<p>".encode())
                while not stop.wait(0.02):
                    client.sendall(b".")
                return
            cut.set()

        stop, cut = threading.Event(), threading.Event()
        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        with refused(Unfetched):
            fetch(f"http://127.0.0.1:{listening.getsockname()[1]}/", allowed=anywhere, most=10_000, seconds=0.2)
        cut.wait(PATIENCE)
        stop.set()
        thread.join()
        assert cut.is_set()


def test_a_page_that_ends_before_its_length_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def half() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(1000)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n<p>")

        thread = threading.Thread(target=half, daemon=True)
        thread.start()
        with refused(Unfetched):
            fetch(f"http://127.0.0.1:{listening.getsockname()[1]}/", allowed=anywhere, most=100, seconds=PATIENCE)
        thread.join()
