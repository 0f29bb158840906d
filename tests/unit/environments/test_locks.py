"""What a lock says: which Pythons, which key, who installs it; and what a build's last words mean."""

import re

import pytest

from trivium.environments.locks import judge_python, name_of, next_step, no_python, read_locks
from trivium.types.errors import ServeError

LOCK = "# python: 3.9 3.11 3.10\nnumpy==1.23.5\n"


def lock(folder, text=LOCK, name="old"):
    (folder / f"{name}.txt").write_text(text)
    return read_locks(folder)[name]


def test_every_shipped_lock_pins_all_and_names_its_pythons():
    locks = read_locks()
    assert "mxnet" in locks
    for one in locks.values():
        lines = [line for line in one.text.splitlines() if line and not line.startswith("#")]
        assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", line) for line in lines), one.name
        assert one.pythons
        assert name_of(one.place) == one.name


def test_the_best_python_comes_first(tmp_path):
    assert lock(tmp_path).pythons == ("3.11", "3.10", "3.9")


def test_the_content_is_the_key(tmp_path):
    first = lock(tmp_path).place
    assert lock(tmp_path).place == first
    assert lock(tmp_path, LOCK + "idna==3.7\n").place != first


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("mxnet-0123456789abcdef", "mxnet"),
        ("old-one-0123456789abcdef", "old-one"),
        ("trivium-scratch-abc", ""),
        (".mxnet-0123456789abcdef.lock", ""),
        ("mxnet", ""),
    ],
)
def test_whose_a_folder_is(place, name):
    assert name_of(place) == name


@pytest.mark.parametrize(
    ("line", "is_torch"), [("torch==2.1", True), ("torchvision==1", True), ("xtorch==1", False)]
)
def test_pip_installs_torch(tmp_path, line, is_torch):
    assert lock(tmp_path, f"{LOCK}{line}\n").names_torch is is_torch


def test_a_python_that_is_too_new_is_named_with_one_that_does(tmp_path):
    made = lock(tmp_path)
    judge_python(made, "3.10", "/bin/python")
    with pytest.raises(ServeError) as caught:
        judge_python(made, "3.13", "/bin/python")
    for words in (
        "/bin/python is Python 3.13",
        "3.11 or 3.10 or 3.9",
        "trivium env build old --python python3.11",
    ):
        assert words in caught.value.message
    assert "this is Python 3.14" in no_python(made, "3.14").message


@pytest.mark.parametrize(
    ("words", "step"),
    [
        ("ERROR: [Errno 28] No space left on device", "disk is full"),
        ("Temporary failure in name resolution / ERROR: No matching distribution found for numpy", "network"),
        ("error: Request failed / Caused by: dns error: failed to lookup", "network"),
        ("ERROR: No matching distribution found for numpy==1.23.5", "PIP_INDEX_URL"),
        ("ensurepip is not available", "venv"),
        ("something else", "nothing is left"),
    ],
)
def test_last_words_lead_to_a_next_step(words, step):
    assert step in next_step(words)


def test_what_nothing_needs_is_named_to_be_removed(tmp_path):
    assert lock(tmp_path).unwanted == ()
    assert lock(tmp_path, f"# unwanted: torchvision some-other\n{LOCK}").unwanted == (
        "torchvision",
        "some-other",
    )
    assert read_locks()["openvino-export"].unwanted == ("torchvision",)
