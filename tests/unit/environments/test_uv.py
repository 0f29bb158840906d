"""When uv may install the packages of a model in pip's place: where that comes to the same."""

import sys
from pathlib import Path

import pytest

from trivium.environments.recipe import EnvironmentRecipe
from trivium.environments.uv import adds_what_is_below, asking_pip, installing, is_configured, may_use_uv
from trivium.types.spec import OwnEnvironment

NEEDS = OwnEnvironment("needs.txt")


@pytest.mark.parametrize(
    ("text", "wish", "may"),
    [
        ("tiny-stamp==1.0\n", NEEDS, True),
        ("torch\n", NEEDS, False),
        ("tiny\n  torchvision>=0.1 ; python_version > '3'\n", NEEDS, False),
        ("Torch==2.0\n", NEEDS, False),
        ("pytorch-lightning\n", NEEDS, True),  # what it brings along the dry run says
        ("tiny\n", OwnEnvironment("needs.txt", is_offline=True), False),
        ("tiny\n", OwnEnvironment("needs.txt", wheels="requirements"), False),
    ],
)
def test_not_for_torch_and_not_where_only_pip_knows_the_wish(text, wish, may):
    assert may_use_uv(EnvironmentRecipe(sys.executable, Path("/m"), wish), text) is may


@pytest.mark.parametrize(
    ("lines", "is_so"),
    [
        ([], False),
        ([":env:.user='0'", ":env:.config-file='/dev/null'"], False),
        (["global.index-url='https://packages.example/simple'"], True),
        ([":env:.user='0'", ":env:.no-index='1'"], True),
    ],
)
def test_what_is_configured_for_pip_is_pips(lines, is_so):
    assert is_configured(lines) is is_so


@pytest.mark.parametrize(
    ("lines", "adds"),
    [
        (["Resolved 1 package in 1ms", "+ tiny-stamp==1.0"], False),
        (["+ tiny-stamp==1.0 (from file:///m/tiny.whl)", "+ Typing_Extensions==4.0"], True),
        (["+ tiny-stamp==1.0", "+ torch==2.9"], True),
        (["+ numpy==2.0"], True),
        (["- numpy==2.0"], False),
    ],
)
def test_what_lies_below_is_not_installed_again(lines, adds):
    assert adds_what_is_below(lines, ["numpy", "typing-extensions"]) is adds


def test_the_commands_are_run_for_the_environment_and_by_no_file_of_the_model():
    recipe = EnvironmentRecipe(sys.executable, Path("/m"), NEEDS)
    words = installing("/bin/uv", Path("/e/bin/python"), recipe, "--dry-run")
    assert words[:2] == ("/bin/uv", "--no-config")
    assert words[-4:] == ("--python", "/e/bin/python", "-r", "needs.txt")
    assert "--dry-run" in words
    assert asking_pip(Path("/e/bin/python"))[:2] == ("/e/bin/python", "-I")
