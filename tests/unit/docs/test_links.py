"""The index leads to every page, links lead to files, and the README's figures are those of the page of figures."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "bench").glob("lab/*.md"))]
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def links(page: Path) -> set[Path]:
    """What a page links to inside the repository."""
    found = (link for link in _LINK.findall(page.read_text()) if "://" not in link)
    return {(page.parent / link).resolve() for link in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_something(page: Path) -> None:
    missing = [str(link.relative_to(ROOT)) for link in links(page) if not link.exists()]
    assert not missing, f"{page.name} links to {missing}"


def test_the_index_leads_to_every_page() -> None:
    index = DOCS / "README.md"
    pages = {page for page in DOCS.rglob("*.md") if page != index and page.parent.name != "adr"}
    missing = sorted(str(page.relative_to(DOCS)) for page in pages - links(index))
    assert not missing, f"docs/README.md lists pages by task and has no link to {missing}"


def test_the_figures_of_the_readme_are_those_of_the_page() -> None:
    figures = re.compile(r"\| ([\d.,]+ \| [\d.,]+ \| [\d.]+) \|")
    shown = figures.findall((ROOT / "README.md").read_text())
    assert len(shown) == 2
    page = set(figures.findall((DOCS / "benchmarks/request-path.md").read_text()))
    assert set(shown) <= page, "copy the figures of docs/benchmarks/request-path.md"
