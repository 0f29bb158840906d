"""How a library that lacks is told: by whom it is needed, and by the command that installs it here."""

import sys
from importlib import metadata

import pytest

from trivium.machine import extras, python_commands
from trivium.types.errors import Code


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The packages that this environment has, for the test to change."""
    installed = {"numpy", "torch"}

    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return "1"

    lines = ["numpy>=1", "onnxruntime>=1.19", 'torch>=2; extra == "llm"', "gguf<2,>=0.1; extra == 'llm'"]
    monkeypatch.setattr(metadata, "requires", lambda name: [*lines, "trivium[llm]; extra == 'test'"])
    monkeypatch.setattr(metadata, "version", version)
    return installed


@pytest.mark.parametrize(
    ("extra", "command"),
    [("llm", "-m pip install 'gguf<2,>=0.1'"), ("", "-m pip install 'onnxruntime>=1.19'")],
)
def test_what_lacks_of_an_extra_is_named(environment: set[str], extra: str, command: str) -> None:
    assert extras.install_command(extra) == f"{sys.executable} {command}"


def test_where_nothing_lacks_all_of_it_is_named(environment: set[str]) -> None:
    environment.add("gguf")
    assert extras.install_command("llm").endswith("install 'torch>=2' 'gguf<2,>=0.1'")


def test_from_sources_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert extras.install_command("llm").endswith("install 'trivium[llm]'")
    assert extras.install_command().endswith("install trivium")


def test_without_pip_it_is_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_commands, "find_spec", lambda name: None)
    monkeypatch.setattr(python_commands.shutil, "which", lambda name: f"/bin/{name}")
    assert python_commands.installer("/env/bin/python") == [
        "uv",
        "pip",
        "install",
        "--python",
        "/env/bin/python",
    ]


def test_a_package_in_the_place_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras.sys, "executable", "/my env/python")
    python = "'/my env/python' -m pip"
    assert (
        extras.exchange_command("one", "one-gpu") == f"{python} uninstall -y one && {python} install one-gpu"
    )
    monkeypatch.setattr(python_commands, "find_spec", lambda name: None)
    monkeypatch.setattr(python_commands.shutil, "which", lambda name: f"/bin/{name}")
    where = "--python '/my env/python'"
    assert (
        extras.exchange_command("one", "one-gpu")
        == f"uv pip uninstall {where} one && uv pip install {where} one-gpu"
    )


def test_the_error_says_who_needs_it_and_what_is_wrong(environment: set[str]) -> None:
    error = extras.lacking("GGUF files", ModuleNotFoundError("No module named", name="gguf.quants"), "llm")
    assert error.code is Code.UNSUPPORTED
    assert error.message.startswith("GGUF files need gguf, which is not installed. Install it with: ")
    error = extras.lacking("GGUF files", ImportError("libcudart.so.12: cannot open", name="gguf"), "llm")
    assert "which cannot be imported (libcudart.so.12: cannot open)" in error.message
