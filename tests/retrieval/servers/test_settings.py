from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gnothi.errors import InvalidInput, InvalidSetting, UnknownName
from gnothi.retrieval.servers.settings import described


@dataclass(frozen=True)
class Place:
    server: str
    table: str = "passages"
    timeout: float = 30.0


def test_an_address_may_name_the_table() -> None:
    assert described(Place, "//host/db", "x") == [Place("//host/db")]
    assert described(Place, "//host/db#wiki", "x") == [Place("//host/db", "wiki")]


def test_a_file_describes_several_servers(tmp_path: Path) -> None:
    file = tmp_path / "index.toml"
    file.write_text('timeout = 5\ntable = "t"\n[[servers]]\nserver = "one"\n[[servers]]\nserver = "two"\ntable = "u"\n')
    assert described(Place, str(file), "x") == [Place("one", "t", 5.0), Place("two", "u", 5.0)]
    file.write_text('server = "one"\n')
    assert described(Place, str(file), "x") == [Place("one")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timeout = 5", "got no server"),
        ('server = ""', "got no server"),
        ("servers = 3", "expected tables under"),
        ("servers = []", "expected tables under"),
        ("servers = [1]", "expected tables under"),
        ("server = ", "not valid TOML"),
        ('server = "x"\ntimeout = "soon"', "timeout"),
        ('server = "x"\ntabel = "t"', "Did you mean 'table'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "index.toml"
    file.write_text(text)
    with pytest.raises((InvalidInput, InvalidSetting, UnknownName), match=said):
        described(Place, str(file), "x")


def test_no_address_and_no_file() -> None:
    for nothing in ("", "//", " "):
        with pytest.raises(InvalidSetting, match="expected x:ADDRESS"):
            described(Place, nothing, "x")
    with pytest.raises(InvalidInput, match="cannot read"):
        described(Place, "missing.toml", "x")
