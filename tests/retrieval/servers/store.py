"""An object store on loopback that speaks the protocol of S3: moto's, in an environment of its own beside this one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import held_port

SERVER = Path(sys.prefix) / "store" / "bin" / "moto_server"
BUCKET = "notes"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAFORTHETESTS", "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-tests"}


@contextmanager
def store(server: Path = SERVER) -> Iterator[str]:
    """Its address; it has the bucket."""
    with held_port() as port:
        address = f"http://127.0.0.1:{port}"
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        command = [str(server), "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT"), timeout=10).close()
                except OSError:
                    assert process.poll() is None
                    assert time.monotonic() < until
                    time.sleep(0.05)
                else:
                    break
            yield address
        finally:
            process.kill()
            process.wait()
