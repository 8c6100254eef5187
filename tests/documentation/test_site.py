"""The built site asks no other host for anything, works offline, and has every page for programs as well.

`make docs` builds it; without it these tests are skipped.
"""

import functools
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.browser import CHROMIUM, DESK, PHONE, Browser
from tests.documentation.pages import PAGES, ROOT

SITE = ROOT / "docs" / "_build" / "html"
pytestmark = pytest.mark.skipif(
    not (SITE / "llms.txt").exists(), reason="make docs has not built the site"
)
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "srcset"}
NOT_LOADED = {
    "canonical",
    "next",
    "prev",
    "search",
    "index",
}  # links that are followed, not fetched


class Loads(HTMLParser):
    """Collects what a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        target = values.get(LOADED.get(tag, ""))
        if target and values.get("rel") not in NOT_LOADED:
            self.found.append(target)


def test_no_page_loads_anything_from_another_host() -> None:
    for path in SITE.rglob("*.html"):
        loads = Loads()
        loads.feed(path.read_text())
        away = [target for target in loads.found if re.match(r"(https?:)?//", target)]
        assert away == [], path
    for path in SITE.rglob("*.css"):
        away = re.findall(r"(?:url\(|@import )['\"]?((?:https?:)?//[^'\")]+)", path.read_text())
        assert away == [], path


def test_every_page_is_there_for_programs() -> None:
    listed = (SITE / "llms.txt").read_text()
    for page in PAGES:
        if page.parent == ROOT:
            continue
        name = str(page.relative_to(ROOT / "docs"))
        assert f"]({name}):" in listed
        assert (SITE / name).stat().st_size > 0


class Quiet(SimpleHTTPRequestHandler):
    """Serves the site without a line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize(
    "page",
    [
        "index",
        "start/first-bandit",
        "reference/api/bandit",
        "reference/http-api",
        "explanation/theory",
    ],
)
def test_a_browser_asks_no_other_host(browser: Browser, address: str, page: str) -> None:
    browser.call("Network.enable")
    browser.go(f"{address}/{page}.html")
    requested = browser.run("performance.getEntriesByType('resource').map(e => e.name)")
    assert [url for url in requested if not url.startswith((address, "data:"))] == []
    assert browser.problems() == []
    for width in (DESK, PHONE):
        browser.screen(width)
        assert browser.run("document.documentElement.scrollWidth <= window.innerWidth + 1")


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_search_finds_a_page(browser: Browser, address: str) -> None:
    browser.go(f"{address}/search.html?q=settle")
    browser.wait("document.querySelectorAll('#search-results li').length > 0")
    assert "late-rewards" in browser.run("document.querySelector('#search-results').innerHTML")
