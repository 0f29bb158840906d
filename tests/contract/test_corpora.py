"""What people have is served, or refused by a sentence that helps: the files of the originals' public repositories.

Each entry of `tests/fixtures/corpora` is one such file; `tests/harness/corpora.py` says how they are laid out. After a
change of a sentence `python -m tests.harness.corpora` writes the tables anew, to be read before they are committed, and
`make docs` what the manual says of them.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.corpora import Entry, tables, weights_of_all

from trivium.types.findings import Finding, Severity

ENTRIES = tables()
JARGON = re.compile(r"\b(rows|fold|span|claim|passive|origin|spec|dataclass|None|NoneType)\b")
"""Words of the code, and no user's."""

LEAST = 150


@pytest.fixture(scope="module")
def weights() -> Iterator[Path]:
    """A small language model, for every entry that speaks of one."""
    with tempfile.TemporaryDirectory() as place:
        yield weights_of_all(Path(place) / "weights")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.table}-{entry.name}")
def test_it_is_served_or_refused_by_a_sentence_that_helps(
    entry: Entry, tmp_path: Path, weights: Path
) -> None:
    said = entry.said(tmp_path, weights)
    assert said.refusals(tmp_path) == entry.refused, (entry.seen, [str(one) for one in said.findings])
    assert said.reports() == entry.reported, (entry.seen, [str(one) for one in said.findings])
    for finding in said.findings:
        check_sentence(finding)


def check_sentence(finding: Finding) -> None:
    """It says where, names what is written there, and an error says what to do."""
    text = str(finding)
    assert finding.found, text
    assert not JARGON.search(text.replace(finding.file, "")), text
    if finding.severity is Severity.ERROR:
        assert finding.file, text
        assert finding.hint or len(re.findall(r"[.?](?: |$)", finding.found)) > 1, f"no next step: {text}"
    file = Path(finding.file)
    if finding.line is not None and file.is_file():
        lines = file.read_text().splitlines()
        assert 1 <= finding.line <= len(lines), text
        word = re.sub(r"\[.*?\]", "", finding.key).split(".")[0]
        assert word in lines[finding.line - 1] or file.suffix == ".pbtxt" or file.suffix == ".json", text


def test_there_are_enough_of_them_and_each_is_told_apart() -> None:
    assert len(ENTRIES) >= LEAST
    assert max(Counter((entry.table, entry.name) for entry in ENTRIES).values()) == 1
    assert all(re.match(r"[\w.-]+/[\w.-]+/", entry.seen) for entry in ENTRIES)
