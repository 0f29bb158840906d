"""Workflows on disk: what is one, what it brings, and what is wrong with its files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.djl_folders import DEFAULTS, FORMAT, HANDLER, faults, make, one

from trivium.core.models.source_policy import applied
from trivium.servers.djl.words.model_urls import read_url
from trivium.types.findings import Severity
from trivium.types.schedules import Graph
from trivium.types.sources import ModelSource

GLUE = """
def pre(one): return one
class Post:
    def __init__(self, config): pass
    def __call__(self, a, b=None): return a
"""
FLOW = {
    "models": {"m": "{model_dir}/m"},
    "functions": {"pre": "glue:pre", "post": "glue:Post"},
    "configs": {"post": {"scale": 2}},
    "workflow": {"out": ["post", ["m", ["pre", "in"]]]},
}


def flow(root, name="flow", file="workflow.json", document=None, **members):
    folder = make(root, name, glue_py=GLUE)
    (folder / file).write_text(json.dumps({**(document or FLOW), **members}))
    return folder


def asked(path, url="", **fields):
    """What the core makes of a path that somebody has asked for."""
    source = replace(read_url(url or str(path)).source("the test", str(path)), **fields)
    return applied(FORMAT.read_source(path, source, DEFAULTS), source, True)


def test_a_folder_is_a_graph_with_its_members(tmp_path):
    folder = flow(tmp_path, "my-flow")
    spec = one(folder)
    assert (spec.name, spec.version, spec.is_versioned, spec.root) == ("my_flow", "1", False, folder)
    assert isinstance(spec.scheduling, Graph)
    assert spec.scheduling.models == ("my_flow:pre", "m", "my_flow:post")
    assert (spec.limits.queue_items, spec.in_turns) == (17, True)
    model, pre, post = FORMAT.members(spec)
    assert (model.uri, model.name, model.over) == (f"{folder}/m", "m", {})
    assert (pre.uri, pre.name) == (f"{folder}/workflow.json", "my_flow:pre")
    assert json.loads(post.over["trivium_function_config"].value) == {"scale": 2}


def test_a_plain_model_brings_nothing(tmp_path):
    assert FORMAT.members(one(make(tmp_path, "m", model_py=HANDLER))) == ()


@pytest.mark.parametrize("file", ["workflow.json", "workflow.yml", "workflow.yaml", "any.json", "any.yaml"])
def test_definitions_by_their_names(tmp_path, file):
    folder = flow(tmp_path, file=file)
    is_folders = file.startswith("workflow")
    assert FORMAT.claims(folder / file)
    assert FORMAT.claims(folder) is is_folders
    assert one(folder / file).name == ("flow" if is_folders else "any")


def test_json_goes_before_yaml(tmp_path):
    folder = flow(tmp_path)
    (folder / "workflow.yaml").write_text("name: other\n")
    assert one(folder).entry == "workflow.json"


def test_a_store_may_hold_workflows(tmp_path):
    flow(tmp_path, "flow")
    make(tmp_path, "m", model_py=HANDLER)
    reading = FORMAT.read(tmp_path, DEFAULTS)
    assert [(spec.name, spec.engine) for spec in reading.specs] == [("flow", "workflow"), ("m", "python-djl")]


def test_functions_are_handlers_of_the_folder(tmp_path):
    folder = flow(tmp_path)
    (folder / "serving.properties").write_text("option.env=A=1\nmaxWorkers=2\n")
    _, _, post = FORMAT.members(one(folder))
    assert FORMAT.claims(Path(post.uri))
    (spec,) = applied(FORMAT.read_source(Path(post.uri), post, DEFAULTS), post, True).specs
    assert (spec.name, spec.engine, spec.entry) == ("flow:post", "python-djl", "glue")
    assert (spec.handler.function, spec.handler.environment["A"]) == ("Post", "1")
    assert spec.handler.settings["workflow_function"] == {"scale": 2}
    assert spec.groups[0].maximum == 2
    assert "trivium_function" not in spec.handler.settings["properties"]


def test_a_model_may_lie_in_the_workflows_own_folder(tmp_path):
    document = {"models": {"m": "{model_dir}"}, "workflow": {"out": ["m", "in"]}}
    folder = flow(tmp_path, document=document)
    (folder / "model.py").write_text(HANDLER)
    (model,) = FORMAT.members(one(folder))
    (spec,) = applied(FORMAT.read_source(folder, model, DEFAULTS), model, True).specs
    assert (spec.name, spec.engine, spec.scheduling.levels) == ("m", "python-djl", 10)


def test_the_name_that_somebody_chose_goes_before_the_definitions(tmp_path):
    folder = flow(tmp_path, name="folder", document={**FLOW, "name": "own", "version": "0.1"})
    for url, name in ((str(folder), "own"), (f"w={folder}", "w"), (f"w:7={folder}", "w")):
        (spec,) = asked(folder, url).specs
        assert (spec.name, spec.version, spec.is_versioned) == (name, "0.1", True)
        assert [member.name for member in FORMAT.members(spec)] == ["m", f"{name}:pre", f"{name}:post"]
        assert {member.version for member in FORMAT.members(spec)[1:]} == {"0.1"}


def test_a_version_that_is_not_the_definitions_is_told(tmp_path):
    folder = flow(tmp_path, version="0.1")
    (spec,) = asked(folder, f"w:7={folder}").specs
    assert any("version 7 is asked for" in str(one) for one in spec.reports)


def test_a_definition_of_any_name_has_its_functions_beside_it(tmp_path):
    folder = flow(tmp_path, file="any.json")
    _, pre, _ = FORMAT.members(one(folder / "any.json"))
    assert FORMAT.claims(Path(pre.uri))
    (spec,) = FORMAT.read_source(Path(pre.uri), pre, DEFAULTS).specs
    assert (spec.root, spec.handler.function) == (folder, "pre")


def test_a_name_and_a_version_that_nobody_wrote_down_are_those_of_the_request(tmp_path):
    folder = flow(tmp_path)
    (spec,) = asked(folder, f"w:7={folder}").specs
    assert (spec.name, spec.version, spec.is_versioned) == ("w", "7", True)
    assert FORMAT.members(spec)[1].version == "7"


def test_parameters_of_the_url_are_put_in(tmp_path):
    folder = flow(tmp_path, document={"models": {"m": "/models/{which}"}, "workflow": {"out": ["m", "in"]}})
    (spec,) = asked(folder, f"{folder}?which=a&other=b").specs
    assert FORMAT.members(spec)[0].uri == "/models/a"
    assert any("other has no effect" in str(one) for one in spec.reports)


@pytest.mark.parametrize("url", ["w::Python={}", "w:::cpu={}", "{}?batch_size=4"])
def test_settings_of_models_are_not_those_of_a_workflow(tmp_path, url):
    folder = flow(tmp_path)
    reading = asked(folder, url.format(folder))
    assert reading.specs == ()
    assert "Write it into the definition" in str(reading.unreadable[0].findings)


def test_a_definition_from_elsewhere_knows_its_place(tmp_path):
    folder = flow(
        tmp_path,
        file="flow.json",
        document={"models": {"m": "{model_dir}/m.zip"}, "workflow": {"out": ["m", "in"]}},
    )
    source = ModelSource("https://h/a/flow.json?x=1", "flow", is_named_after_uri=True)
    (spec,) = FORMAT.read_source(folder / "flow.json", source, DEFAULTS).specs
    assert FORMAT.members(spec)[0].uri == "https://h/a/m.zip"


BAD_FUNCTIONS = {
    "too many arguments": (["post", "in", "in", "in"], {"post": "glue:Post"}, "takes 1 to 2"),
    "too few arguments": (["pre"], {"pre": "glue:pre"}, "takes 1"),
    "a file that is near": (["pre", "in"], {"pre": "glu:pre"}, "Did you mean glue?"),
}


@pytest.mark.parametrize("name", BAD_FUNCTIONS)
def test_functions_that_cannot_be_called_so(tmp_path, name):
    out, functions, words = BAD_FUNCTIONS[name]
    folder = flow(tmp_path, document={"functions": functions, "workflow": {"out": out}})
    (fault,) = faults(folder)
    assert words in str(fault)
    assert fault.line == 1


def test_a_function_that_its_file_has_not_is_a_fault_of_the_member(tmp_path):
    folder = flow(tmp_path, document={"functions": {"pre": "glue:pree"}, "workflow": {"out": ["pre", "in"]}})
    (pre,) = FORMAT.members(one(folder))
    (broken,) = FORMAT.read_source(Path(pre.uri), pre, DEFAULTS).unreadable
    errors = [one for one in broken.findings if one.severity is Severity.ERROR]
    assert "Did you mean pre?" in str(errors[0])


def test_faults_name_the_file_and_the_line(tmp_path):
    folder = make(tmp_path, "flow")
    (folder / "workflow.yaml").write_text("workflow:\n  out: [nobody, in]\n")
    (fault,) = faults(folder)
    assert (fault.file, fault.line, fault.key) == (str(folder / "workflow.yaml"), 2, "workflow.out[0]")
