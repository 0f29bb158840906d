"""Makes the documentation a site: `make site`. Fails for a warning, a broken link, and what asks another host.

The pages are the files of the repository as they are, in the same folders, so that their links to one another hold on
the site, on a file browser and in an editor alike.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "site"
PAGES = BUILT / "pages"
HTML = BUILT / "html"

CONFIG = """
[project]
site_name = "Trivium"
site_description = "Serves the models that you have, as they are, to the clients that you have."
docs_dir = "pages"
site_dir = "html"
use_directory_urls = false
nav = [
  { "Trivium" = "README.md" },
  { "The manual" = "docs/README.md" },
  { "Start" = "docs/start.md" },
  { "Move" = ["docs/moving-from-triton.md", "docs/moving-from-djl-serving.md", "docs/moving-from-torchserve.md"] },
  { "Serve" = [
    "docs/triton.md", "docs/djl.md", "docs/torchserve.md", "docs/llm.md", "docs/tasks.md", "docs/tables.md",
    "docs/graphs.md", "docs/engines.md", "docs/environments.md", "docs/mlflow.md", "docs/models-by-name.md",
    "docs/llm-api.md", "docs/matrix.md", "docs/profiles.md", "docs/v2-protocol.md", "docs/v1-protocol.md",
    "docs/openai.md", "docs/payloads.md", "docs/asgi.md", "docs/corpora.md",
  ] },
  { "Write a handler" = ["docs/handlers.md", "docs/workers.md"] },
  { "Configure" = "docs/configuration.md" },
  { "Protect" = ["docs/access.md", "SECURITY.md", "docs/trust.md"] },
  { "Operate" = [
    "docs/console.md", "docs/operations.md", "docs/containers.md", "docs/kubernetes.md", "docs/scale.md",
  ] },
  { "Watch" = ["docs/metrics.md", "docs/tracing.md"] },
  { "Extend" = [
    "docs/extending.md", "docs/architecture.md", "docs/adr/README.md", "docs/fuzzing.md", "CONTRIBUTING.md",
  ] },
  { "Changes" = "CHANGELOG.md" },
]

[project.theme]
font = false
features = ["navigation.sections", "navigation.footer", "navigation.top", "content.code.copy", "search.highlight"]

[project.markdown_extensions.tables]

[project.markdown_extensions.toc]
permalink = true

[project.markdown_extensions."pymdownx.highlight"]

[project.markdown_extensions."pymdownx.superfences"]

[project.validation]
invalid_links = true
invalid_link_anchors = true
"""

_ASKED_FOR = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
"""What a browser fetches by itself, and where it is named."""

_DRAWN = frozenset({"mermaid", "glightbox"})
"""Elements for which the site's own script fetches a program from elsewhere."""

_NOT_FETCHED = frozenset({"canonical", "alternate", "next", "prev", "edit"})
_IN_STYLE = re.compile(r"(?:url\(|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)")

_FENCE = re.compile(r"^( *```\w+) [^\n`]*$", re.MULTILINE)
"""The words behind a language tell our tests what to do with the block; Zensical would take them for text."""


class Links(HTMLParser):
    """Gathers what a page fetches, where it leads, and the names of its places."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.leads_to: list[str] = []
        self.places: set[str] = set()
        self.drawn: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one element."""
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if values.get(name)}
        self.drawn |= _DRAWN & set(values.get("class", "").split())
        address = values.get(_ASKED_FOR.get(tag, ""), "")
        if address and not (tag == "link" and _NOT_FETCHED & set(values.get("rel", "").split())):
            self.fetched.append(address)
        if tag == "a" and values.get("href"):
            self.leads_to.append(values["href"])


def stage() -> None:
    """Lay out the pages and pictures that git knows, in their folders."""
    shutil.rmtree(BUILT, ignore_errors=True)
    words = [
        *(":(glob)*.md", "docs/*.md", "docs/*.svg", "docs/*.png"),
        *("examples/*.md", "bench/lab/*.md", "bench/lab/*.csv"),
    ]
    git = ["git", "ls-files", "--", *words]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        (PAGES / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, PAGES / name)
        if name.endswith(".md"):
            (PAGES / name).write_text(_FENCE.sub(r"\1", (ROOT / name).read_text()))
    (BUILT / "zensical.toml").write_text(CONFIG.lstrip())


def build() -> None:
    """Let Zensical build it; it ends for a warning."""
    program = Path(sys.executable).with_name("zensical")
    subprocess.run(
        [program, "build", "--strict", "--clean", "-f", BUILT / "zensical.toml"], cwd=BUILT, check=True
    )


def faults(html: Path) -> Iterator[str]:
    """Yield each broken link of the built pages in a folder, and each thing that they fetch from elsewhere."""
    pages = {path: Links(path.read_text()) for path in sorted(html.rglob("*.html"))}
    for path, links in pages.items():
        shown = path.relative_to(html)
        yield from (f"{shown} fetches {address}" for address in links.fetched if urlsplit(address).netloc)
        yield from (f"{shown} has a {name}, whose program is fetched" for name in sorted(links.drawn))
        for address in links.leads_to:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{shown} leads to {address}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{shown} leads to {address}, whose place is not there"
    for path in sorted(html.rglob("*.css")):
        for address in _IN_STYLE.findall(path.read_text()):
            yield f"{path.relative_to(html)} fetches {address}"


def main() -> None:
    """Make the site, and look at each page of it."""
    stage()
    build()
    found = list(faults(HTML))
    for line in found:
        print(line, file=sys.stderr)
    if found:
        sys.exit(1)
    print(f"{len(list(HTML.rglob('*.html')))} pages: open {HTML.relative_to(ROOT)}/index.html")


if __name__ == "__main__":
    main()
