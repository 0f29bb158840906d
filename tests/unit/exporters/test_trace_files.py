import json
import logging
import resource

import pytest

from trivium.exporters import trace_files
from trivium.exporters.trace_files import TraceFiles
from trivium.servers.triton.words.trace_text import text
from trivium.types.errors import Code, ServeError
from trivium.types.tracing import Moment, Trace


def trace(number):
    return [Trace(number, 0, "m", "1", "", moments=[(Moment.STARTED, 1.0)])]


def numbers(path):
    return [one["id"] for one in json.loads(path.read_text()) if "model_name" in one]


def test_one_file_for_all_is_whole_after_every_write(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("something old")
    files = TraceFiles(str(path), text, follows=True)
    assert (files.file, files.follows, path.read_text()) == (str(path), True, "something old")
    written = []
    for number in (1, 2, 3):
        files.take([trace(number)], False)
        files.flush()
        written.append(numbers(path))
    files.close()
    assert written == [[1], [1, 2], [1, 2, 3]]


def test_numbered_files_beside_it(tmp_path):
    files = TraceFiles(str(tmp_path / "t"), text, follows=False)
    files.take([trace(1), trace(2)], True)
    files.take([trace(3)], False)
    files.take([trace(4)], True)
    files.close()
    assert {path.name: numbers(path) for path in tmp_path.iterdir()} == {"t.0": [1, 2], "t": [3], "t.1": [4]}


def test_the_number_of_files_has_an_end(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(trace_files, "MOST_FILES", 2)
    files = TraceFiles(str(tmp_path / "t"), text, follows=False)
    for number in range(1, 6):
        files.take([trace(number)], True)
    files.close()
    found = {path.name: numbers(path) for path in tmp_path.iterdir()}
    assert found == {"t.0": [1], "t.1": [2], "t": [3, 4, 5]}
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_what_cannot_be_written_is_logged(tmp_path, caplog, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    files = TraceFiles(str(folder / "t"), text, follows=False)
    folder.rmdir()
    with caplog.at_level(logging.ERROR):
        files.take([trace(1)], False)
        files.take([trace(2)], True)
        files.close()
        assert caplog.text.count("traces are lost, 1 requests'") == 2
        monkeypatch.setattr(trace_files, "MOST_BEHIND", 0)
        files.take([trace(3)], False)
    assert "too slow" in caplog.text


@pytest.mark.parametrize("is_begun", [False, True])
@pytest.mark.parametrize("room", [0, 1, 40])
def test_a_full_disk_loses_traces_and_never_the_file(tmp_path, caplog, is_begun, room):
    path = tmp_path / "t"
    files = TraceFiles(str(path), text, follows=False)
    if is_begun:
        files.take([trace(1)], False)
        files.flush()
    kept = path.stat().st_size if path.exists() else 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with caplog.at_level(logging.ERROR):
        resource.setrlimit(resource.RLIMIT_FSIZE, (kept + room, before[1]))
        try:
            files.take([trace(2)], False)
            files.flush()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "traces are lost, 1 requests'" in caplog.text
    files.take([trace(3)], False)
    files.close()
    assert numbers(path) == ([1, 3] if kept else [3])


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ServeError, match="Make it") as caught:
        TraceFiles(str(tmp_path / "no" / "t"), text, follows=False)
    assert caught.value.code is Code.LOAD_FAILED
