"""A real Chromium, headless, and the checks that tests need."""

from __future__ import annotations

import importlib.resources
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = os.environ.get("ODC_TEST_CHROMIUM") or shutil.which("chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None,
    reason="needs Chromium: apt-get install chromium, or name one by ODC_TEST_CHROMIUM",
)
TIMEOUT_MS = 60_000
expect.set_options(timeout=TIMEOUT_MS)
AXE = importlib.resources.files("axe_playwright_python").joinpath("axe.min.js")
GRAVE = ("serious", "critical")


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page, and the errors of its console and network. width, dark: of the browser."""

    def __init__(
        self, browser: Browser, *, width: int = 1440, dark: bool = False, **more: Any
    ) -> None:
        self._context = browser.new_context(
            viewport={"width": width, "height": 844 if width < 600 else 1000},
            color_scheme="dark" if dark else "light",
            **{"timezone_id": "Europe/Berlin", "locale": "en-GB", **more},
        )
        self._context.set_default_timeout(TIMEOUT_MS)
        self.page: Page = self._context.new_page()
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda m: self._heard(m.type, m.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.errors.append(text)

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()

    def enter(self, address: str) -> None:
        """Open the link that odcctl page printed, and confirm."""
        self.page.goto(address)
        self.page.get_by_role("button", name="Log in as").click()
        self.page.wait_for_url(lambda url: "/page/enter" not in url)

    def wait_live(self) -> None:
        self.page.wait_for_selector("#pulse.on")

    def grave_faults(self) -> list[str]:
        """The findings of axe-core that are serious or critical."""
        self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate("axe.run()")
        return [
            f"{fault['id']}: {fault['help']}: {[node['html'][:160] for node in fault['nodes'][:3]]}"
            for fault in found["violations"]
            if fault["impact"] in GRAVE
        ]

    def scrolls_sideways(self) -> bool:
        return self.page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )


def pictures() -> Path | None:
    """Where pictures are kept, when ODC_TEST_PICTURES names a folder."""
    named = os.environ.get("ODC_TEST_PICTURES")
    if not named:
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def keep_picture(tab: Tab, name: str, *, full: bool = False) -> None:
    folder = pictures()
    if folder is not None:
        tab.page.screenshot(path=folder / f"{name}.png", full_page=full)
