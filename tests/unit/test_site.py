"""What the check of the built documentation finds: broken links and whatever asks another host."""

import runpy
from pathlib import Path

import pytest

FAULTS = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "site.py"))["faults"]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('<a href="b.html#there">b</a><a href="https://elsewhere.example">c</a><a href="#own" id="own">', []),
        ('<a href="c.html">', ["a.html leads to c.html, which is not there"]),
        ('<a href="b.html#nowhere">', ["a.html leads to b.html#nowhere, whose place is not there"]),
        ('<script src="https://cdn.example/x.js">', ["a.html fetches https://cdn.example/x.js"]),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', ["a.html fetches //cdn.example/x.css"]),
        ('<link rel="canonical" href="https://here.example/">', []),
        ('<pre class="mermaid">', ["a.html has a mermaid, whose program is fetched"]),
    ],
)
def test_a_page(tmp_path: Path, body: str, found: list[str]) -> None:
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<h2 id="there">')
    assert list(FAULTS(tmp_path)) == found


def test_a_style_sheet(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text("a { src: url(https://fonts.example/a.woff) } b { src: url(b.woff) }")
    assert list(FAULTS(tmp_path)) == ["x.css fetches https://fonts.example/a.woff"]
