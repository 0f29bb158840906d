"""What makes an environment: command lines, variables, and which recipes share a key."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.python_packages import wheel

from trivium.environments.recipe import MOST_TEXT, EnvironmentRecipe, below, bundled_files, inside, variables
from trivium.types.spec import OwnEnvironment

WHEEL = "tiny_stamp-1.0-py3-none-any.whl"
PLAIN = OwnEnvironment("requirements.txt")


def recipe(
    folder: Path, requirements: str = "numpy\n", wish: OwnEnvironment = PLAIN, **fields
) -> EnvironmentRecipe:
    folder.mkdir(exist_ok=True)
    (folder / "requirements.txt").write_text(requirements)
    return EnvironmentRecipe(sys.executable, folder, wish, **fields)


@pytest.mark.parametrize(
    ("wish", "more"),
    [
        (PLAIN, []),
        (OwnEnvironment("requirements.txt", "requirements"), ["-f", "requirements"]),
        (OwnEnvironment("requirements.txt", "requirements", True), ["-f", "requirements", "--no-index"]),
        (OwnEnvironment("requirements.txt", "", True), ["--no-deps"]),
    ],
)
def test_what_pip_is_told(tmp_path, wish, more):
    """Section 8.6 of the sheet; what is bundled has a name that leads from the model's folder."""
    command = recipe(tmp_path, wish=wish).installing(Path("/e/bin/python"))
    assert command[:5] == ("/e/bin/python", "-I", "-u", "-m", "pip")
    at = command.index("-r")
    assert list(command[at:]) == ["-r", "requirements.txt", *more]
    assert "install" in command[:at]


@pytest.mark.parametrize(
    ("wish", "has_pip", "without"),
    [(PLAIN, True, True), (PLAIN, False, False), (OwnEnvironment(is_private=True), False, True)],
)
def test_pip_is_put_in_only_where_it_is_needed_and_not_there(tmp_path, wish, has_pip, without):
    command = recipe(tmp_path, wish=wish).making(Path("/e"), has_pip)
    assert command == (
        sys.executable,
        "-I",
        "-u",
        "-m",
        "venv",
        *(["--without-pip"] if without else []),
        "/e",
    )


def test_packages_from_below_come_by_their_own_rules(tmp_path):
    """Each line is run by `site`, as that of any `.pth` file."""
    assert below(["/a/b", "/it's"]).splitlines() == [
        "import site; site.addsitedir('/a/b')",
        'import site; site.addsitedir("/it\'s")',
    ]
    assert below([]) == ""


def test_nothing_leads_pip_out_of_the_environment(tmp_path):
    given = {
        "PIP_TARGET": "/t",
        "PIP_PREFIX": "/p",
        "PIP_USER": "1",
        "PYTHONPATH": "/x",
        "PIP_INDEX_URL": "u",
    }
    made = variables(given, tmp_path)
    assert made == {"PIP_INDEX_URL": "u", "PIP_USER": "0", "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}


def test_scripts_of_the_environment_go_first():
    assert inside(Path("/e"), "/usr/bin") == {"VIRTUAL_ENV": "/e", "PATH": "/e/bin:/usr/bin"}
    assert inside(Path("/e"), "")["PATH"].startswith("/e/bin:")


def test_equal_contents_have_one_key_wherever_they_lie(tmp_path):
    keys = []
    for name in ("a", "b"):
        made = recipe(tmp_path / name, f"./{WHEEL}\nnumpy>=1 # any\n")
        (tmp_path / name / WHEEL).write_bytes(b"a wheel")
        keys += [made.key(), made.key()]
    assert len(set(keys)) == 1


def changes():
    """Each: what is other than in the first recipe."""
    yield "the text", {"requirements": "numpy==1\n"}, None
    yield "the interpreter", {}, lambda made: replace(made, python="/usr/bin/python9")
    yield "a variable", {"variables": {"PIP_INDEX_URL": "https://a"}}, None
    yield "off line", {"wish": replace(PLAIN, is_offline=True)}, None
    yield "its place", {"wish": replace(PLAIN, parent=Path("/p"))}, None
    yield "private", {"wish": replace(PLAIN, is_private=True)}, None
    yield "bundled wheels", {"wish": replace(PLAIN, wheels="requirements")}, None


@pytest.mark.parametrize(
    ("fields", "change"), [row[1:] for row in changes()], ids=[row[0] for row in changes()]
)
def test_each_part_changes_the_key(tmp_path, fields, change):
    wheel(tmp_path / "requirements", "1.0")
    first = recipe(tmp_path)
    before = first.key()
    other = recipe(tmp_path, **fields)
    assert (change(other) if change else other).key() != before
    assert json.loads(json.dumps(before)) == before


def test_the_content_of_a_bundled_wheel_counts(tmp_path):
    made = recipe(tmp_path, WHEEL)
    keys = set()
    for content in (b"one", b"two"):
        (tmp_path / WHEEL).write_bytes(content)
        keys.add(made.key())
    wheels = recipe(tmp_path, wish=replace(PLAIN, wheels="requirements"))
    for version in ("1.0", "2.0"):
        wheel(tmp_path / "requirements", version)
        keys.add(wheels.key())
    assert len(keys) == 4


def test_private_ones_of_two_folders_are_two(tmp_path):
    wish = OwnEnvironment(is_private=True)
    first, second = (recipe(tmp_path / name, wish=wish) for name in ("a", "b"))
    assert first.key() == first.key()
    assert first.key() != second.key()


@pytest.mark.parametrize(
    "line", ["-e .", ".", "./lib", "-r more.txt", "-c c.txt", "x @ file://${HOME}/x", "./gone.whl"]
)
def test_what_depends_on_more_than_the_text_is_never_shared(tmp_path, line):
    made = recipe(tmp_path, line)
    assert made.key() != made.key()


@pytest.mark.parametrize(
    "line",
    [
        *("numpy", "numpy>=1.2,<3", "uvicorn[standard]~=0.2", "a.b-c_d==1.0", "  numpy  # why", "", "# a"),
        *(
            "--extra-index-url https://a/b",
            "-i https://a",
            "x==1 \\\n  --hash=sha256:ab",
            'x>1; python_version<"3.9"',
        ),
    ],
)
def test_what_says_all_by_itself_is_shared(tmp_path, line):
    assert list(bundled_files(line, tmp_path)) == []


def test_a_line_of_blanks_is_read_at_once(tmp_path):
    """In a time that was quadratic it never came to an end, and nobody else had the interpreter meanwhile."""
    assert list(bundled_files("a" + " " * (MOST_TEXT - 2) + "/", tmp_path)) == [None]


def test_a_file_of_requirements_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    wish = OwnEnvironment("pipe.txt")
    with pytest.raises(OSError, match="a named pipe, not a file"):
        EnvironmentRecipe("python", tmp_path, wish).key()


def test_a_file_of_requirements_is_bounded(tmp_path):
    made = recipe(tmp_path, "#" * (MOST_TEXT + 1))
    with pytest.raises(OSError, match=f"more than {MOST_TEXT} bytes"):
        made.key()
