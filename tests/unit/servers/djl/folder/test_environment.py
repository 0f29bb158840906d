"""Which DJL models get an environment of their own, and what is said where they get none."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.djl_folders import DEFAULTS, HANDLER, make

from trivium.servers.djl.folder.environment import EnvironmentRules, environment_rules
from trivium.servers.djl.folder.repository import DjlFormat, made
from trivium.types.findings import Severity
from trivium.types.spec import OwnEnvironment

INSTALLS = replace(DEFAULTS, installs=True)


def read(folder, defaults=INSTALLS, rules=EnvironmentRules()):  # noqa: B008
    (spec,) = DjlFormat({}, rules).read(folder, defaults).specs
    return spec


def model(root, *lines, requirements="numpy", wheels=False):
    files = {"requirements_txt": requirements} if requirements else {}
    folder = make(root, "m", *lines, model_py=HANDLER, **files)
    if wheels:
        (folder / "requirements").mkdir()
    return folder


def test_requirements_are_installed_where_the_server_installs(tmp_path):
    spec = read(model(tmp_path, wheels=True))
    assert spec.handler.own == OwnEnvironment("requirements.txt", "requirements")
    assert spec.reports == ()
    assert "handler.own" in spec.origin


def test_without_the_switch_the_notice_names_it(tmp_path):
    spec = read(model(tmp_path), DEFAULTS)
    assert spec.handler.own is None
    (notice,) = spec.reports
    assert notice.severity is Severity.NOTICE
    assert "--install-packages" in str(notice)


@pytest.mark.parametrize("defaults", [DEFAULTS, INSTALLS])
@pytest.mark.parametrize("written", ["true", "TRUE"])
def test_a_private_one_needs_no_requirements_and_no_switch(tmp_path, defaults, written):
    spec = read(model(tmp_path, f"option.enable_venv={written}", requirements=""), defaults)
    assert spec.handler.own == OwnEnvironment(is_private=True)


def test_a_private_one_without_the_switch_has_no_packages(tmp_path):
    spec = read(model(tmp_path, "option.enable_venv=true"), DEFAULTS)
    assert spec.handler.own == OwnEnvironment(is_private=True)
    assert "not installed" in str(spec.reports[0])


@pytest.mark.parametrize(
    ("line", "notices"), [("option.enable_venv=false", 0), ("option.enable_venv=yes", 1)]
)
def test_what_is_not_true_is_false(tmp_path, line, notices):
    spec = read(model(tmp_path, line, requirements=""))
    assert spec.handler.own is None
    assert [report.key for report in spec.reports] == ["option.enable_venv"] * notices


def test_bundled_packages_without_requirements_are_nothing(tmp_path):
    """As in the original, which looks for requirements.txt alone."""
    assert read(model(tmp_path, requirements="", wheels=True)).handler.own is None


def test_variables_say_where_and_whether_off_line(tmp_path):
    assert environment_rules({}) == EnvironmentRules(None, False)
    assert environment_rules({"DJL_OFFLINE": "no"}) == EnvironmentRules(None, False)
    variables = {"DJL_VENV_DIR": "/environments", "DJL_OFFLINE": "TRUE"}
    rules = environment_rules(variables)
    assert rules == EnvironmentRules(Path("/environments"), True)
    (spec,) = made(variables).read(model(tmp_path), INSTALLS).specs
    assert spec.handler.own == OwnEnvironment("requirements.txt", "", True, False, Path("/environments"))
