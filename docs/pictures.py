"""Makes the pictures of docs/view.md from the page itself, in a real browser: ``python docs/pictures.py RUN TASK``.

RUN is a run folder, TASK the id of a training task whose tree is shown. Needs the extra ``dev`` and a Chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.async_api import Page, async_playwright

IMAGES = Path(__file__).parent / "images"
WIDTH = 1160


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of ``wer view``."""
    command = [sys.executable, "-m", "wer", "view", str(run), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def drawn(page: Page) -> None:
    """Wait until the page has its content."""
    await page.wait_for_selector("#main:not([aria-busy]) > *")
    await page.wait_for_timeout(400)


async def picture(page: Page, name: str, height: int) -> None:
    """Keep what is seen from the top."""
    await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    await page.screenshot(
        path=IMAGES / f"{name}.png", full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
    )


async def main(run: Path, task: str) -> None:
    """Take every picture."""
    IMAGES.mkdir(exist_ok=True)
    with served(run) as address:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = await browser.new_page(viewport={"width": WIDTH, "height": 860})
            await page.goto(address)
            await drawn(page)
            await picture(page, "view-overview", 770)
            await page.click("#top >> text=Lineage")
            await page.click(f"#main td a:text-is('{task}')")
            await drawn(page)
            await page.click("a.node.retained >> nth=1")
            await drawn(page)
            await picture(page, "view-lineage", 840)
            await page.click("#top >> text=Skills")
            await drawn(page)
            await picture(page, "view-skills", 700)
            await page.emulate_media(color_scheme="dark")
            await page.click("#top >> text=Pairs")
            await page.click("#main td a.button")
            await drawn(page)
            await picture(page, "view-pair", 760)
            await browser.close()
    for image in sorted(IMAGES.glob("view-*.png")):
        print(f"{image}: {image.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("task")
    given = parser.parse_args()
    asyncio.run(main(given.run, given.task))
