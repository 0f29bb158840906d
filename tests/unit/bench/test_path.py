"""The walks that the architecture page shows are of files that there are, and are counted right."""

import re
from pathlib import Path

import pytest
from bench import path

_FILE = re.compile(r"^\d+\. `(.+)`$", re.MULTILINE)


def test_the_page_shows_three_walks_with_files_that_exist() -> None:
    block = path.PAGE.read_text().split(path.BEGIN)[1].split(path.END)[0]
    walks = re.split(r"^\*\*(.+): (\d+) files\.\*\*$", block, flags=re.MULTILINE)[1:]
    assert len(walks) == 9, "run `make path`"
    for title, count, text in zip(walks[::3], walks[1::3], walks[2::3], strict=True):
        files = _FILE.findall(text)
        missing = [file for file in files if not (path.ROOT / "src" / file).is_file()]
        assert not missing, f"{title}: {missing} are no files; run `make path`"
        assert len(set(files)) == int(count), title


def test_a_file_counts_that_every_walk_entered_in_the_order_of_the_first(tmp_path: Path) -> None:
    source = path.ROOT / "src" / "trivium"
    notes = tmp_path / "1.calls"
    walks = [["b.py", "a.py", "timer.py"], *[["a.py", "b.py"]] * 4]
    notes.write_text(
        "".join(f"{number}\t{source}/{file}\n" for number, files in enumerate(walks, 1) for file in files)
        + f"1\t{source}/demo/model.py\n1\t/usr/lib/python3/queue.py\n"
    )
    assert path.passed(notes) == ["trivium/b.py", "trivium/a.py"]


def test_a_process_that_no_walk_passed_has_no_files(tmp_path: Path) -> None:
    notes = tmp_path / "1.calls"
    notes.write_text("")
    assert path.passed(notes) == []


@pytest.mark.parametrize(("worker", "count"), [([], 2), (["trivium_worker/wire/frames.py", "b"], 3)])
def test_a_file_of_server_and_worker_is_counted_once(worker: list[str], count: int) -> None:
    walk = path.Walk("a walk", ["trivium_worker/wire/frames.py", "a"], worker)
    assert walk.lines()[0] == f"**a walk: {count} files.**"
