"""Definitions of workflows: what is read from JSON and YAML, and everything that is wrong with one, with its line."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.codecs.graph_functions import FUNCTIONS
from trivium.core.graph.policy import needed
from trivium.servers.djl.words.workflow_documents import MAX_BYTES, read_text
from trivium.servers.djl.words.workflows import TEMPLATE_NAMES, TEMPLATES, read_workflow
from trivium.types import reasons
from trivium.types.errors import ConfigError
from trivium.types.findings import Severity
from trivium.types.payload import Listed, Raw, RawPart
from trivium.types.schedules import Step


def text_of(document, file="/w/workflow.json", parameters=None):
    data = document if isinstance(document, str | bytes) else json.dumps(document, indent=1)
    return read_text(file, data.encode() if isinstance(data, str) else data, parameters or {})


def workflow_of(document, file="/w/workflow.json", parameters=None, name="", version="", default="w"):
    return read_workflow(text_of(document, file, parameters), name, version, default)


def faults_of(document, **fields):
    with pytest.raises(ConfigError) as caught:
        workflow_of(document, **fields)
    return [one for one in caught.value.findings if one.severity is Severity.ERROR]


def notices_of(document):
    text = text_of(document)
    read_workflow(text, "", "", "w")
    return [str(one) for one in text.findings]


def steps_of(workflow):
    return [(step.name, step.takes, step.gives) for step in workflow.graph.steps]


WHOLE = """
name: flow
version: 1.5
minWorkers: 1
batchSize: 2
models:
  plain: "file:///models/plain?topK=3"
  rich:
    modelUrl: s3://bucket/rich.zip
    version: "2"
    engineName: PyTorch
    loadOnDevices: cpu
    modelName: net
    application: cv/image_classification
    translatorFactory: some.Factory
    arguments: {width: 224, normalize: true}
    options: {mapLocation: true}
    queueSize: 10
    batchSize: 4
    maxBatchDelayMillis: 5
    maxIdleSeconds: 60
    minWorkers: 2
    maxWorkers: 3
    dynamicAdapters: true
functions:
  pre: glue:pre
  post: "pack.glue:Post"
configs:
  post: {scale: 2.5}
  adapters:
    a: {model: plain, src: /adapters/a, options: {rank: "8"}}
workflow:
  made: [pre, in]
  one: [plain, made]
  two: [rich, made]
  out: [post, [functionsApply, [plain, rich], made], one, [adapter, a, two], [id, in]]
"""


def test_a_whole_definition():
    flow = workflow_of(WHOLE, "/w/flow.yaml")
    assert (flow.name, flow.version) == ("flow", "1.5")
    plain, rich = flow.models["plain"], flow.models["rich"]
    assert (plain.uri, plain.name, plain.version) == ("/models/plain", "plain", "")
    assert {key: one.value for key, one in plain.over.items()} == {"topK": "3"}
    assert {key: one.value for key, one in plain.under.items()} == {"minWorkers": "1", "batch_size": "2"}
    assert (rich.uri, rich.version, rich.engine, rich.devices) == (
        "s3://bucket/rich.zip",
        "2",
        "PyTorch",
        ("cpu",),
    )
    assert {key: one.value for key, one in rich.over.items()} == {
        "option.modelName": "net",
        "application": "cv/image_classification",
        "translatorFactory": "some.Factory",
        "width": "224",
        "normalize": "true",
        "option.mapLocation": "true",
        "job_queue_size": "10",
        "batch_size": "4",
        "max_batch_delay": "5",
        "max_idle_time": "60",
        "minWorkers": "2",
        "maxWorkers": "3",
    }
    width = rich.over["width"].origin
    assert (width.file, width.line, width.key) == ("/w/flow.yaml", 16, "models.rich.arguments.width")
    post = flow.functions["flow:post"]
    assert (post.code, json.loads(post.config), post.calls) == ("pack.glue:Post", {"scale": 2.5}, {4})
    (call,) = flow.standing
    assert (call.topic, call.function, call.properties["src"]) == ("a", "register_adapter", "/adapters/a")
    assert call.arguments == (("name", "a"), ("src", "/adapters/a"), ("rank", "8"))
    assert steps_of(flow) == [
        ("flow:pre", ("in",), "made"),
        ("plain", ("made",), "one"),
        ("rich", ("made",), "two"),
        ("plain", ("made",), "#2"),
        ("rich", ("made",), "#3"),
        ("list", ("#2", "#3"), "#1"),
        ("plain", ("two",), "#4"),
        ("same", ("in",), "#5"),
        ("flow:post", ("#1", "one", "#4", "#5"), "out"),
    ]
    passes = {
        (step.name, step.passes_adapter) for step in flow.graph.steps if step.model in ("plain", "rich")
    }
    assert passes == {("plain", True), ("rich", False)}
    assert [step.adapter for step in flow.graph.steps if step.adapter] == ["a"]
    assert {step.version for step in flow.graph.steps if step.model == "rich"} == {"2"}


def test_json_and_yaml_are_the_same():
    there = workflow_of(json.dumps(yaml.safe_load(WHOLE), indent=2))
    here = workflow_of(WHOLE, "/w/flow.yaml")
    assert (there.graph, there.models) == (here.graph, here.models)


NAMES = [
    ("spec", {"name": "own"}, "spec"),
    ("", {"name": "own"}, "own"),
    ("", {}, "default"),
]


@pytest.mark.parametrize(("named", "members", "name"), NAMES)
def test_the_name_of_a_spec_goes_first(named, members, name):
    document = {**members, "functions": {"f": "g:f"}, "workflow": {"out": ["f", "in"]}}
    flow = workflow_of(document, name=named, default="default")
    assert flow.name == name
    assert list(flow.functions) == [f"{name}:f"]


@pytest.mark.parametrize(("own", "asked", "version"), [("0.1", "3", "0.1"), (None, "3", "3"), (None, "", "")])
def test_the_version_of_a_definition_goes_first(own, asked, version):
    document = {"version": own, "workflow": {"out": ["id", "in"]}}
    assert workflow_of(document, version=asked).version == version


def test_parameters_are_put_into_the_text():
    document = {"models": {"m": "{model_dir}/{which}"}, "workflow": {"out": ["m", "in"]}}
    text = text_of(document, parameters={"model_dir": '/a "b"', "which": "c\\d", "other": "x"})
    assert text.used == {"model_dir", "which"}
    assert read_workflow(text, "", "", "w").models["m"].uri == '/a "b"/c\\d'


def test_what_is_no_parameter_stays_as_it_is():
    document = {"models": {"m": "/a/{b}"}, "workflow": {"out": ["m", "in"]}}
    assert workflow_of(document).models["m"].uri == "/a/{b}"


@pytest.mark.parametrize("name", TEMPLATE_NAMES)
def test_templates_are_definitions(name):
    path = TEMPLATES / f"{name}.json"
    parameters = {"adapter": "poet", "model": "/models/base", "url": "/adapters/poet", "base": "base"}
    flow = read_workflow(read_text(str(path), path.read_bytes(), parameters), "", "", "w")
    assert (flow.name, flow.version) == ("poet", "0.1")
    assert steps_of(flow) == [("base", ("in",), "out")]
    assert flow.standing[0].properties == {"name": "poet", "alias": "poet", "src": "/adapters/poet"}


def test_models_go_before_functions_and_functions_before_built_ins():
    document = {
        "models": {"both": "/m", "id": "/i"},
        "functions": {"both": "g:f", "ensemble": "g:e"},
        "workflow": {"out": ["ensemble", ["both", ["id", "in"]], "in"]},
    }
    names = [name for name, _, _ in steps_of(workflow_of(document))]
    assert names == ["id", "both", "w:ensemble"]


def test_what_out_does_not_need_is_told_and_left_out():
    document = {
        "models": {"m": "/m", "idle": "/i"},
        "functions": {"f": "g:f"},
        "workflow": {"a": ["idle", "in"], "b": ["f", "a"], "out": ["m", "in"]},
        "configs": {"g": {}},
        "timeout": 5,
    }
    told = "\n".join(notices_of(document))
    for words in (
        "does not need a",
        "does not need b",
        "comes from idle",
        "calls f",
        "no function g",
        "timeout",
    ):
        assert words in told
    flow = workflow_of(document)
    assert (list(flow.models), list(flow.functions)) == (["m"], [])


M = {"m": "/m"}
F = {"f": "g:f"}
BAD = {
    "a circle": ({"workflow": {"a": ["id", "b"], "b": ["id", "a"], "out": ["id", "a"]}}, "a -> b -> a"),
    "a value that is itself": ({"workflow": {"out": ["id", "out"]}}, "out -> out"),
    "an undefined value": (
        {"workflow": {"first": ["id", "in"], "out": ["id", "frst"]}},
        "Did you mean first?",
    ),
    "an undefined callable": (
        {"models": {"model": "/m"}, "workflow": {"out": ["modle", "in"]}},
        "mean model?",
    ),
    "no out": ({"workflow": {"ouT": ["id", "in"]}}, "no value out"),
    "no workflow": ({}, "no value out"),
    "a model of two": ({"models": M, "workflow": {"out": ["m", "in", "in"]}}, "a model takes 1"),
    "a model of none": ({"models": M, "workflow": {"out": ["m"]}}, "0 arguments for m"),
    "id of two": ({"workflow": {"out": ["id", "in", "in"]}}, "id takes 1"),
    "ensemble of none": ({"workflow": {"out": ["ensemble"]}}, "ensemble takes 1"),
    "functionsApply of none": ({"workflow": {"out": ["functionsApply"]}}, "a list of names"),
    "functionsApply of names": ({"workflow": {"out": ["functionsApply", ["id"]]}}, "at least two"),
    "functionsApply of values": ({"workflow": {"out": ["functionsApply", "in", "in"]}}, "a list of names"),
    "functionsApply of unknown": (
        {"workflow": {"out": ["functionsApply", ["x"], "in"]}},
        "nothing called 'x'",
    ),
    "adapter of one": ({"workflow": {"out": ["adapter", "in"]}}, "two:"),
    "an unknown adapter": ({"workflow": {"out": ["adapter", "a", "in"]}}, "no adapter 'a'"),
    "an adapter of no model": (
        {"configs": {"adapters": {"a": {"model": "n"}}}, "workflow": {"out": ["adapter", "a", "in"]}},
        "no model 'n'",
    ),
    "an adapter from elsewhere": (
        {
            "models": M,
            "configs": {"adapters": {"a": {"model": "m", "src": "s3://x/y"}}},
            "workflow": {"out": ["adapter", "a", "in"]},
        },
        "a path of this machine",
    ),
    "a name as an expression": ({"workflow": {"out": "in"}}, 'Write ["id", "in"].'),
    "an empty expression": ({"workflow": {"out": []}}, "[callable, argument...]"),
    "a number as an argument": ({"workflow": {"out": ["id", 5]}}, "the name of a value"),
    "a callable that is a list": ({"workflow": {"out": [["id"], "in"]}}, "the name of what is called"),
    "a callable as a value": ({"models": M, "workflow": {"out": ["id", "m"]}}, 'write ["m", ...]'),
    "a list for a model": (
        {"models": M, "workflow": {"all": ["functionsApply", ["m"], "in"], "out": ["m", ["id", "all"]]}},
        "a list for the model m",
    ),
    "a list as the answer": ({"workflow": {"out": ["functionsApply", ["id"], "in"]}}, "a list as the answer"),
    "in defined": ({"workflow": {"in": ["id", "in"], "out": ["id", "in"]}}, "the request itself"),
    "a class in Java": ({"functions": {"f": "com.x.F"}, "workflow": {"out": ["f", "in"]}}, "def f(input)"),
    "a function without module": ({"functions": {"f": "f"}, "workflow": {"out": ["f", "in"]}}, "module:name"),
    "a configuration without JSON": (
        '{"functions": {"f": "g:f"}, "configs": {"f": {"x": NaN}}, "workflow": {"out": ["f", "in"]}}',
        "JSON has not",
    ),
    "an unknown member": ({"modles": {}, "workflow": {"out": ["id", "in"]}}, "Did you mean models?"),
    "an unknown member of a model": ({"models": {"m": {"modelURL": "/m"}}}, "Did you mean modelUrl?"),
    "a model without URL": ({"models": {"m": {}}}, "no modelUrl"),
    "a model that is a number": ({"models": {"m": 5}}, "an object with modelUrl"),
    "a model that is a workflow": ({"models": {"m": "/w/other.json"}}, "a workflow"),
    "a model of the zoo": ({"models": {"m": "djl:x"}}, "djl://"),
    "a wrong device": ({"models": {"m": {"modelUrl": "/m", "loadOnDevices": "tpu"}}}, "tpu"),
    "a setting that is a list": ({"models": {"m": {"modelUrl": "/m", "batchSize": [1]}}}, "a text, a number"),
    "arguments that are a text": (
        {"models": {"m": {"modelUrl": "/m", "arguments": "a=b"}}},
        "an object of values",
    ),
    "a wrong truth value": ({"models": {"m": {"modelUrl": "/m", "dynamicAdapters": 5}}}, "true or false"),
    "a name with a slash": ({"name": "a/b", "workflow": {"out": ["id", "in"]}}, "without slashes"),
    "a name that is a list": ({"name": [], "workflow": {"out": ["id", "in"]}}, "a text"),
    "models that are a list": ({"models": [], "workflow": {"out": ["id", "in"]}}, "an object"),
    "a list": ([], "no object"),
    "no JSON": ('{"workflow": ', "no JSON"),
    "a key that is there twice": ('{"name": "a",\n"name": "b"}', "stands twice"),
    "no UTF-8": (b'{"name": "\xff"}', "no UTF-8"),
    "megabytes": (b" " * (MAX_BYTES + 1), "more than"),
    "megabytes by its parameters": ('{"name": "' + "{p}" * 40_000 + '"}', "filled in"),
    "depth": ("[" * 5000 + "]" * 5000, "read"),
    "nested expressions": (
        '{"workflow": {"out": ' + '["id",' * 60 + '"in"' + "]" * 60 + "}}",
        "nested over",
    ),
    "many values": (
        {"workflow": {**{f"v{i}": ["id", "in"] for i in range(300)}, "out": ["id", "in"]}},
        "301 values",
    ),
    "many calls": ({"workflow": {"out": ["functionsApply", ["id"] * 300, "in"]}}, "at most 200"),
    "many models": ({"models": {f"m{i}": "/m" for i in range(300)}}, "at most 200"),
    "many faults": ({f"x{i}": 1 for i in range(5000)}, "no member of that name"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    document, words = BAD[name]
    found = faults_of(document, parameters={"p": "x" * 100})
    assert any(words in str(one) for one in found), [str(one) for one in found]
    assert all(one.info is not None and one.info.reason == reasons.INVALID_GRAPH for one in found)
    assert len(found) <= 100


YAML_TRICKS = {
    "aliases": "a: &a [x]\nb: *a\n",
    "laughs": "a: &a [x,x]\nb: &b [*a,*a]\nworkflow: [*b,*b]\n",
    "a tag": "name: !!python/object/apply:os.system [ls]\n",
    "a long number": "version: " + "1" * 5000 + "\n",
    "depth": "name: " + "[" * 200 + "]" * 200 + "\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "a list as a key": "? [a, b]\n: c\n",
    "a key twice": "name: a\nname: b\n",
    "a tab": "name:\n\t- a\n",
    "nothing": "",
    "numbers as names of values": "workflow: {8: [id, in], out: [id, in]}\n",
    "numbers as names of models": "models: {8: /m}\nworkflow: {out: [id, in]}\n",
    "numbers as members": "8: 9\n",
    "numbers as members of a model": "models: {m: {modelUrl: /m, 8: 9}}\nworkflow: {out: [m, in]}\n",
}


@pytest.mark.parametrize("name", YAML_TRICKS)
def test_yaml_tricks_are_refused(name):
    assert faults_of(YAML_TRICKS[name], file="/w/w.yml")


def test_faults_have_lines_in_both_forms():
    document = {"models": {"m": "/m"}, "workflow": {"out": ["m", "in", "x"]}}
    (one, two) = sorted(faults_of(document), key=lambda one: one.line)
    assert (one.line, one.key) == (7, "workflow.out[0]")
    assert (two.line, two.key) == (9, "workflow.out[2]")
    (fault,) = faults_of("models:\n  m: /m\nworkflow:\n  out:\n    - n\n    - in\n", file="/w/w.yaml")
    assert (fault.line, fault.file) == (5, "/w/w.yaml")
    tabbed = json.dumps({"workflow": {"out": ["n", "in"]}}, indent="\t")
    assert faults_of(tabbed)[0].line == 4


# -- any expressions -------------------------------------------------------------------------------------------


def names(count):
    return ["in", *(f"v{i}" for i in range(count))]


@st.composite
def documents(draw):
    """Values that need only earlier ones, in any order, of models, functions and built-ins."""
    count = draw(st.integers(0, 6))
    workflow = {}
    for i in range(count + 1):
        values = st.sampled_from(names(i))
        deep = st.recursive(values, lambda inner: expressions(inner), max_leaves=6)
        workflow["out" if i == count else f"v{i}"] = draw(expressions(deep))
    workflow["out"] = ["f", workflow["out"]]
    order = draw(st.permutations(list(workflow)))
    return {
        "models": {"m": "/m", "n": "/n"},
        "functions": {"f": "g:f"},
        "workflow": {name: workflow[name] for name in order},
    }


def expressions(arguments):
    return st.one_of(
        st.tuples(st.sampled_from(["m", "n"]), arguments.map(lambda one: ["f", one])).map(list),
        st.tuples(st.just("id"), arguments).map(list),
        st.lists(arguments, min_size=0, max_size=3).map(lambda found: ["f", *found]),
        st.tuples(
            st.just("functionsApply"),
            st.lists(st.sampled_from(["id", "f"]), min_size=1, max_size=3),
            arguments,
        ).map(list),
    )


def call(name, values):
    return values[0] if name == "id" else (name, *values)


def evaluated(document, value):
    """The plain recursive evaluator."""
    if isinstance(value, str):
        return "request" if value == "in" else evaluated(document, document["workflow"][value])
    if value[0] == "functionsApply":
        return [call(name, [evaluated(document, one) for one in value[2:]]) for name in value[1]]
    return call(value[0], [evaluated(document, one) for one in value[1:]])


def run(graph):
    """The graph as its steps say, each once, in any order that their values allow."""
    values = {graph.input: "request"}
    chosen, _ = needed(graph.steps, [graph.output])
    assert len(chosen) == len(graph.steps), "what out does not need is no step"
    left = list(graph.steps)
    while left:
        ready = [step for step in left if all(name in values for name in step.takes)]
        assert ready, "no step can run"
        for step in ready:
            assert step.gives not in values
            values[step.gives] = step_value(step, [values[name] for name in step.takes])
            left.remove(step)
    return values[graph.output]


def step_value(step: Step, values):
    if step.function == "list":
        return values
    if step.function:
        body = Raw((RawPart(b"x"),))
        assert FUNCTIONS[step.function]([body]) is body
        return values[0]
    assert step.is_listed is step.model.startswith("w:")
    return (step.model.removeprefix("w:"), *values)


@settings(max_examples=examples(300), deadline=None)
@given(documents())
def test_any_graph_of_expressions_gives_what_a_recursive_evaluator_gives(document):
    assert run(workflow_of(document).graph) == evaluated(document, "out")


def test_lists_are_payloads_of_the_graph():
    assert isinstance(FUNCTIONS["list"]([Raw(())]), Listed)
    assert Path(TEMPLATES).is_dir()
