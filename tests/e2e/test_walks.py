"""The architecture page shows which files a request of each kind passes: the walks are made anew, and compared."""

import re
from pathlib import Path

from bench import path

_WALK = re.compile(r"^\*\*(.+): \d+ files\.\*\*$", re.MULTILINE)
_FILE = re.compile(r"^\d+\. `(.+)`$", re.MULTILINE)


def by_title(text: str) -> dict[str, set[str]]:
    _, *parts = _WALK.split(text)
    return {title: set(_FILE.findall(files)) for title, files in zip(parts[::2], parts[1::2], strict=True)}


def test_the_page_shows_the_walks_as_they_are(tmp_path: Path) -> None:
    shown = path.PAGE.read_text().split(path.BEGIN)[1].split(path.END)[0]
    assert by_title(shown) == by_title(path.text_of(path.walks(tmp_path))), "run `make path`"
