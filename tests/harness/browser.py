"""A real browser for tests of the page: the distribution's Chromium, driven by Playwright.

What is asked of another host, and what the browser's console says, is kept: at the end there must be none.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

SECONDS = 60.0
"""For whatever should take one."""

_REPLACE = """([found, words]) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(found, words);
}"""
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A browser of its own; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium: apt-get install chromium")
    words = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=[*words, "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@contextlib.contextmanager
def page_of(browser: Any, url: str, scheme: str = "light", width: int = 1280) -> Iterator[Any]:
    """The page at an address, perhaps below a path, as somebody sees it who prefers that scheme. It must have asked no
    other host, and left no message in the browser's console.
    """
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("request", lambda request: faults.extend(_strange(request.url, origin)))
    page.goto(f"{url}/")
    page.get_by_text("Live", exact=True).wait_for()
    yield page
    context.close()
    assert not faults, faults


def by_keyboard(page: Any, selector: str) -> None:
    """Move the focus with the Tab key until it is on this element."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement?.matches(wanted) ?? false", selector):
            return
    raise AssertionError(f"the Tab key never comes to {selector}")


def copied(page: Any, press: Callable[[], None]) -> str:
    """What lies in the clipboard once something was pressed."""
    page.evaluate("navigator.clipboard.writeText('')")
    press()
    page.wait_for_function("async () => (await navigator.clipboard.readText()) !== ''")
    return str(page.evaluate("navigator.clipboard.readText()"))


def serious_faults(page: Any) -> list[str]:
    """What axe-core calls serious or critical on the page as it stands."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{page.url} {one['id']}: {one['help']}: {[node['html'] for node in one['nodes']][:3]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def picture(page: Any, name: str, shown_as: Mapping[str, str] | None = None) -> None:
    """Keep the page as a small picture, where somebody asked for the pictures of the documentation. `shown_as` says
    what stands there in place of this machine's folders.
    """
    folder = os.environ.get("CONSOLE_PICTURES")
    if not folder:
        return
    from PIL import Image

    for found, words in (shown_as or {}).items():
        page.evaluate(_REPLACE, [found, words])
    file = Path(folder) / f"{name}.png"
    page.screenshot(path=file)
    with Image.open(file) as drawn:
        small = drawn.convert("RGB").quantize(64)
    small.save(file, optimize=True)


def _strange(address: str, origin: str) -> list[str]:
    parts = urlsplit(address)
    is_own = parts.scheme in ("blob", "data") or f"{parts.scheme}://{parts.netloc}" == origin
    return [] if is_own else [f"asks {address}"]
