"""A real browser for tests of the page: Debian's Chromium, driven by Playwright, that notes whatever goes wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import define, field
from playwright.async_api import Page, async_playwright


@define
class Browsed:
    """A page, and what it complained of.

    Attributes:
        wrong: Errors of scripts, and what the page's policy refused.
        asked: Every address that was asked for.
    """

    page: Page
    wrong: list[str] = field(factory=list)
    asked: list[str] = field(factory=list)

    async def tab(self, name: str) -> str:
        """Go to a page of the run by its tab; gives the text there."""
        await self.page.click(f"#top nav a:text-is('{name}')")
        return await self.settled()

    async def settled(self) -> str:
        """The text of the page when it is drawn."""
        await self.page.wait_for_selector("#main:not([aria-busy]) > *")
        await self.page.wait_for_timeout(150)
        return await self.page.inner_text("#main")


@asynccontextmanager
async def browsing(*, width: int = 1280, dark: bool = False) -> AsyncIterator[Browsed]:
    """Open an empty page; it is closed at the end, and so is the browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=_chromium(),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        context = await browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        browsed = Browsed(await context.new_page())
        browsed.page.on("pageerror", lambda error: browsed.wrong.append(str(error)))
        browsed.page.on(
            "console",
            lambda said: browsed.wrong.append(said.text) if said.type in ("error", "warning") else None,
        )
        browsed.page.on("request", lambda request: browsed.asked.append(request.url))
        yield browsed
        await browser.close()


def _chromium() -> str:
    """The browser of this machine; without one a test fails and says what to do: it is never skipped."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "no Chromium on this machine: apt-get install chromium, or put one into PATH"
    return found
