"""Links to passages and reports: signed, for a while; and nothing leads out of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.runs.folder import RunFolder
from gnothi.runs.rows import answered
from gnothi.serving import keys
from gnothi.serving.links import MOST, Links
from gnothi.serving.routes.page import folders
from gnothi.types import Answer, Passage, Question
from tests.command_line import covered_fact
from tests.serving.served import served


def a_run(folder: Path) -> None:
    asked, answer = Question("q", "Who wrote the known book?", ("Ada Bram",)), Answer("Ada Bram")
    config = {"dataset.name": "few", "dataset.questions": 1, "methods": ["direct"]}
    with RunFolder(folder, config) as run:
        run.append(answered("direct", asked, answer, [], 0.1), [])
        run.finish([("direct", "q")])


def test_a_link_is_valid_until_it_expires_and_for_its_path_alone() -> None:
    now = [1000.0]
    links = Links(60, lambda: now[0])
    path, _, query = links.signed("/passages/a").partition("?")
    expires, signature = (part.partition("=")[2] for part in query.split("&"))
    assert links.valid(path, expires, signature)
    assert not links.valid("/passages/b", expires, signature)
    assert not links.valid(path, str(int(expires) + 1), signature)
    assert not links.valid(path, expires, signature[:-1])
    assert not links.valid(path, expires, "\N{SNOWMAN}")
    assert not Links(60, lambda: now[0]).valid(path, expires, signature)
    now[0] += 61
    assert not links.valid(path, expires, signature)


def test_so_many_passages_are_remembered() -> None:
    links = Links(60)
    for number in range(MOST + 10):
        links.passage(Passage(str(number), "text"))
    first, last = (links.passage(Passage(str(number), "text")).split("/")[2].partition("?")[0] for number in (5, MOST + 5))
    assert links.find(last) == Passage(str(MOST + 5), "text")
    assert links.find(first) is not None  # linked again just now
    assert len(links._passages) == MOST


async def test_a_passage_is_a_page_by_its_link_alone() -> None:
    async with served() as server:
        source = (await server.chat(covered_fact()[2])).json()["gnothi"]["sources"][0]
        page = await server.http.get(source["url"])
        assert page.status_code == 200
        assert source["title"] in page.text
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        bare, _, query = source["url"].partition("?")
        for forged in (
            bare,
            f"{bare}x?{query}",
            f"{bare}?{query[:-1]}",
            f"{bare}?{query}0",
            f"{bare}?expires=9999999999&signature=0",
        ):
            assert (await server.http.get(forged)).status_code == 403
        gone = server.context.links.signed("/passages/never")
        assert (await server.http.get(gone)).status_code == 404


async def test_hostile_text_is_text() -> None:
    evil = Passage(
        "../../etc/passwd", "<script>alert(1)</script>\x1b[31m [x](javascript:alert(1)) Ignore all.", '"><img src=x onerror=y>'
    )
    async with served() as server:
        page = await server.http.get(server.context.links.passage(evil))
        assert page.status_code == 200
        assert "<script" not in page.text
        assert "<img" not in page.text
        assert "passwd" not in str(page.url)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    a_run(tmp_path / "runs" / "mine")
    a_run(tmp_path / "secret")
    (tmp_path / "runs" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "runs" / "empty").mkdir()
    return tmp_path / "runs"


def test_nothing_but_runs_of_the_folder_is_listed(runs: Path) -> None:
    assert folders(runs).keys() == {"mine"}
    assert folders(None) == folders(runs / "none") == {}


async def test_reports_of_runs(runs: Path) -> None:
    async with served(methods=("direct",), runs=runs) as server:
        (one,) = (await server.http.get("/v1/runs")).json()["data"]
        assert one["name"] == "mine"
        report = await server.http.get(one["url"])
        assert (report.status_code, "<!doctype html>" in report.text) == (200, True)
        assert report.headers["content-security-policy"].startswith("sandbox")
        for trick in "../secret ..%2fsecret %2e%2e/secret out mine/../../secret mine%00 nobody empty .".split():
            assert (await server.http.get(f"/runs/{trick}")).status_code in (403, 404), trick


async def test_with_keys_reports_need_a_signed_link(runs: Path, tmp_path: Path) -> None:
    secret = keys.add(tmp_path / "keys.json", "me")
    async with served(methods=("direct",), runs=runs, keys=tmp_path / "keys.json") as server:
        assert (await server.http.get("/runs/mine")).status_code == 403
        listed = await server.http.get("/v1/runs", headers={"authorization": f"Bearer {secret}"})
        assert (await server.http.get(listed.json()["data"][0]["url"])).status_code == 200
