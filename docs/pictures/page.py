"""The picture of the live page: ``python docs/pictures/page.py CALIBRATION`` asks the laboratory's model and writes
``page.png`` beside this file.

The one that is there is with ``gnothi calibrate lab-train --method seakr --limit 60 --target-error 0.2``. It needs Chromium.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

QUESTION = "Who leads the town hall of Feilmhaven?"
SETUPS = ("gnothi/seakr", "gnothi/direct")
WIDTH, HEIGHT = 1180, 1100


def main(calibration: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = ["serve", "--port", "0", "--calibration", calibration, "--set", f"server.feedback={folder}/feedback.jsonl"]
        server = subprocess.Popen([sys.executable, "-m", "gnothi", *command], stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            address = next(line for line in server.stderr if " answers as " in line).partition("/v1 ")[0]
            picture = shot(address)
        finally:
            server.terminate()
            server.wait()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128).save(Path(__file__).parent / "page.png", optimize=True)


def shot(address: str) -> bytes:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{address}/")
        page.locator(".chip").first.wait_for()
        for box in page.locator(".chip input").all():
            box.set_checked(box.get_attribute("value") in SETUPS)
        page.fill("#question", QUESTION)
        page.keyboard.press("Enter")
        page.locator(".card:not(.working) .passage.won").wait_for()
        page.locator("#send").wait_for()
        page.locator("#asked").click()  # nothing is selected
        picture = page.screenshot()
        browser.close()
        return picture


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
