"""DJL's workflows over the real server: under load, shared, in versions, coming and going, with adapters, hostile ones.

Models tell what they saw, so that the answers of a whole graph are compared with what its definition means.
"""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.fixtures import models
from tests.harness.commands import trivium
from tests.harness.djl_serving import DjlServing, djl_serving
from tests.harness.raw_http import Answer, connect, get, post, reset
from tests.harness.server_process import ServerProcess, neighbour, serve_handlers, until
from tests.harness.web import body, web

HANDLER = """
from djl_python import Output

def handle(inputs):
    if inputs.is_empty():
        return None
    text = inputs.get_as_string()
    %s
    return Output().add(text + "-%s").add("note of %s", "note").add_property("x-last", "%s")
"""
MEET = """
    import pathlib, time
    here = pathlib.Path(inputs.get_property("model_dir")).parent
    if text == "meet":
        (here / "%s.met").touch()
        while not (here / "%s.met").exists():
            time.sleep(0.01)
"""
WAIT = """
    import pathlib, time
    here = pathlib.Path(inputs.get_property("model_dir")).parent
    if text.startswith("wait"):
        (here / "waits").touch()
        while not (here / "go").exists():
            time.sleep(0.01)
"""
STATUS = """
    if text.endswith("teapot"):
        return Output(418, "teapot").add("short and stout")
"""
GLUE = """
from djl_python import Output

def pre(request):
    if request.get_as_string() == "raise":
        raise ValueError("no such thing")
    return Output().add(request.get_as_bytes()).add_property("x-pre", "seen")

class Join:
    def __init__(self, config):
        self.sign = config["sign"]

    def __call__(self, results, made):
        texts = [one.get_as_string() for one in results]
        notes = [one.get_as_string("note") if one.contains_key("note") else "" for one in results]
        return self.sign.join([*texts, *notes, made.get_property("x-pre")])
"""
FLOW = {
    "models": {name: f"{{model_dir}}/../{name}" for name in ("left", "right", "last")},
    "functions": {"pre": "glue:pre", "join": "glue:Join"},
    "configs": {"join": {"sign": "+"}},
    "workflow": {
        "made": ["pre", "in"],
        "both": ["functionsApply", ["left", "right"], "made"],
        "out": ["last", ["join", "both", "made"]],
    },
}
MEMBERS = ("left", "right", "last", "flow:pre", "flow:join")


def meant(text: str) -> bytes:
    """What the workflow answers to a text, by its definition."""
    return f"{text}-left+{text}-right+note of left+note of right+seen-last".encode()


def handler(root: Path, name: str, code: str = "", *settings: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(HANDLER % (code, name, name, name))
    (folder / "serving.properties").write_text("\n".join(("engine=Python", "maxWorkers=1", *settings)) + "\n")
    return folder


def define(root: Path, name: str, document: Any, glue: str = GLUE, file: str = "workflow.json") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "glue.py").write_text(glue)
    (folder / "serving.properties").write_text("maxWorkers=1\n")
    (folder / file).write_text(json.dumps(document, indent=1) if isinstance(document, dict) else document)
    return folder


def lay_out(root: Path) -> Path:
    handler(root, "left", MEET % ("left", "right"))
    handler(root, "right", MEET % ("right", "left") + STATUS)
    handler(root, "last", WAIT)
    return define(root, "flow", FLOW)


def predict(server: ServerProcess, name: str, text: str) -> Answer:
    return server.ask(post(f"/predictions/{name}", text.encode(), b"Content-Type: text/plain\r\n"))


def register(server: ServerProcess, url: object, route: str = "workflows", more: str = "") -> Answer:
    return server.ask(post(f"/{route}?url={quote(str(url))}{more}", b""))


def unregister(server: ServerProcess, name: str) -> None:
    assert server.ask(get(f"/workflows/{name}", method=b"DELETE")).status == 200


def there(server: ServerProcess) -> set[str]:
    return set(server.ask(get("/ping")).document)


def counts(server: ServerProcess, name: str) -> tuple[int, int]:
    """How many requests a model has answered, and how many failed."""
    (row,) = server.ask(get(f"/v2/models/{quote(name)}/stats")).document["model_stats"]
    stats = row["inference_stats"]
    return stats["success"]["count"], stats["fail"]["count"]


def await_only(server: ServerProcess, *names: str) -> None:
    until(lambda: there(server) == set(names), lambda: f"{there(server)}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One with the model `echo`, where workflows are registered and unregistered."""
    root = tmp_path_factory.mktemp("served")
    with serve_handlers(root / "log", models.identity(root / "models", "echo", rows=16).parent) as running:
        yield running


# -- a workflow of three models and two functions ----------------------------------------------------------


def test_under_load_branches_run_in_parallel_and_counters_add_up(
    server: ServerProcess, tmp_path: Path
) -> None:
    assert register(server, lay_out(tmp_path)).document == {"status": 'Workflow "flow" registered.'}
    met = predict(server, "flow", "meet")  # each branch waits for the other
    assert (met.status, met.body, met.fields["x-last"]) == (200, meant("meet"), "last")
    texts = [f"text {i}" for i in range(120)]
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda text: predict(server, "flow", text), texts))
    assert [answer.body for answer in answers] == [meant(text) for text in texts]
    for name in ("flow", *MEMBERS):
        assert counts(server, name) == (121, 0), name

    failed = predict(server, "flow", "raise")
    assert failed.status == 424
    assert "step 'flow:pre': no such thing" in failed.document["error"]
    assert [counts(server, name)[0] for name in MEMBERS] == [121, 121, 121, 121, 121]
    assert counts(server, "flow:pre")[1] == 1
    flowed = predict(server, "flow", "teapot")  # a status of its own is no failure: it flows on
    assert (flowed.status, flowed.body) == (
        200,
        b"teapot-left+short and stout+note of left++seen-last",
    )
    tensor = {"name": "x", "datatype": "BYTES", "shape": [1], "data": ["by v2"]}
    by_v2 = server.ask(post("/v2/models/flow/infer", json.dumps({"inputs": [tensor]}).encode()))
    assert by_v2.document["outputs"][0]["data"] == [meant("by v2").decode()]
    unregister(server, "flow")
    await_only(server, "echo")


def test_a_client_that_leaves_cancels_the_members(server: ServerProcess, tmp_path: Path) -> None:
    assert register(server, lay_out(tmp_path)).status == 200

    def queued() -> int:
        (row,) = server.ask(get("/workflows/last")).document
        return int(row["models"][0]["requestInQueue"])

    first, second = connect(server.port), connect(server.port)
    document = {
        "workflow": {"out": ["last", "in"]},
        "models": {"last": str(tmp_path / "flow" / ".." / "last")},
    }
    short = define(tmp_path, "short", document)
    assert register(server, short).status == 200, "it shares the model"
    first.sendall(post("/predictions/short", b"wait", b"Content-Type: text/plain\r\n"))
    until((tmp_path / "waits").exists, lambda: "the first has not come")
    second.sendall(post("/predictions/flow", b"second", b"Content-Type: text/plain\r\n"))
    until(lambda: queued() == 1, lambda: "the second is not in the queue")
    reset(second)
    until(lambda: queued() == 0, lambda: "it still waits")
    (tmp_path / "go").touch()
    reset(first)
    until(lambda: predict(server, "short", "x").status == 200, lambda: "it does not go on")
    assert counts(server, "left") == (1, 0)
    for name in ("flow", "short"):
        unregister(server, name)
    await_only(server, "echo")


def test_a_handlers_own_status_is_the_workflows(server: ServerProcess, tmp_path: Path) -> None:
    handler(tmp_path, "right", STATUS)
    document = {"models": {"right": "{model_dir}/../right"}, "workflow": {"out": ["right", ["id", "in"]]}}
    assert register(server, define(tmp_path, "flow", document)).status == 200
    answer = predict(server, "flow", "teapot")
    assert (answer.status, answer.body) == (418, b"short and stout")
    unregister(server, "flow")
    await_only(server, "echo")


# -- sharing, versions, coming and going -------------------------------------------------------------------


def test_members_are_shared_while_others_come_and_go_under_load(
    server: ServerProcess, tmp_path: Path
) -> None:
    flow = lay_out(tmp_path)
    assert register(server, flow).status == 200
    document = {"models": {"left": str(flow / ".." / "left")}, "workflow": {"out": ["left", "in"]}}
    other = define(tmp_path, "other", document)
    leaves = threading.Event()

    def ask() -> int:
        count = 0
        while not leaves.is_set():
            assert predict(server, "flow", str(count)).body == meant(str(count))
            count += 1
        return count

    with ThreadPoolExecutor(2) as clients:
        lives = [clients.submit(ask) for _ in range(2)]
        for i in range(3):
            waits = "" if i else "&synchronous=false"
            answer = register(server, other, more=waits)
            assert answer.document == {
                "status": f'Workflow "other" regist{"ered." if i else "ration scheduled."}'
            }
            until(lambda: predict(server, "other", "x").body == b"x-left", lambda: "it is not there")
            unregister(server, "other")
            await_only(server, "echo", "flow", *MEMBERS)
        leaves.set()
        assert all(life.result() > 0 for life in lives)
    unregister(server, "flow")
    await_only(server, "echo")


def test_versions_take_turns_and_each_has_functions_of_its_own(server: ServerProcess, tmp_path: Path) -> None:
    handler(tmp_path, "m")
    for version in ("0.1", "0.2"):
        document = {
            "name": "own",
            "version": version,
            "models": {"m": str(tmp_path / "m")},
            "functions": {"f": "glue:f"},
            "workflow": {"out": ["m", ["f", "in"]]},
        }
        glue = f"def f(one):\n    return one.get_as_string() + ' {version}'\n"
        folder = define(tmp_path, f"v{version}", document, glue)
        assert register(server, folder, "models").document == {"status": 'Model "own" registered.'}
        twice = register(server, folder)
        assert (twice.status, twice.document["type"]) == (409, "BadRequestException")
    asked = {predict(server, "own", "x").body for _ in range(4)}
    assert asked == {b"x 0.1-m", b"x 0.2-m"}
    assert predict(server, "own/0.2", "x").body == b"x 0.2-m"
    described = server.ask(get("/workflows/own")).document
    assert [(row["workflowName"], row["version"]) for row in described] == [("own", "0.1"), ("own", "0.2")]
    assert server.ask(get("/workflows/own/0.2", method=b"DELETE")).status == 200
    until(lambda: len(server.ask(get("/models/own:f")).document) == 1, lambda: "both versions are there")
    assert predict(server, "own", "x").body == b"x 0.1-m"
    unregister(server, "own")
    await_only(server, "echo")


def test_a_member_that_cannot_be_had_is_named_and_leaves_nothing(
    server: ServerProcess, tmp_path: Path
) -> None:
    handler(tmp_path, "good")
    code = "def handle(inputs):\n    raise RuntimeError('no weights')\n"
    (handler(tmp_path, "bad") / "model.py").write_text(code)
    for url, words in (("{model_dir}/../bad", "'bad', which 'flow' brings"), ("{model_dir}/../none", "none")):
        document = {
            "models": {"good": "{model_dir}/../good", "bad": url},
            "workflow": {"out": ["bad", ["good", "in"]]},
        }
        answer = register(server, define(tmp_path, "flow", document))
        assert answer.status >= 400
        assert words in answer.document["message"]
        await_only(server, "echo")


# -- adapters ----------------------------------------------------------------------------------------------

ADAPTERS = """
from djl_python import Output
known = {}

def handle(inputs):
    if inputs.is_empty():
        return None
    name = inputs.get_as_string("adapter") if inputs.contains_key("adapter") else ""
    return Output().add("%s %s %s" % (inputs.get_as_string(), name, known.get(name, "unknown")))

def register_adapter(inputs):
    known[inputs.get_property("name")] = inputs.get_property("src")

def unregister_adapter(inputs):
    del known[inputs.get_property("name")]
"""


def test_adapters_are_registered_shared_and_unregistered(server: ServerProcess, tmp_path: Path) -> None:
    base = handler(tmp_path, "base", "", "option.enable_lora=true")
    (base / "model.py").write_text(ADAPTERS)

    def template(adapter: str) -> Answer:
        more = f"template=adapter&adapter={adapter}&url=/adapters/{adapter}&model={quote(str(base))}"
        return server.ask(post(f"/workflows?{more}", b""))

    assert template("poet").document == {"status": 'Workflow "poet" registered.'}
    assert template("cook").status == 200
    assert predict(server, "poet", "x").body == b"x poet /adapters/poet"
    assert predict(server, "cook/0.1", "x").body == b"x cook /adapters/cook"
    assert predict(server, "cook?adapter=poet", "x").body == b"x cook /adapters/cook"
    unregister(server, "cook")
    await_only(server, "echo", "poet", "base")

    def known() -> list[tuple[str, str]]:
        rows = server.ask(get("/models/base/adapters")).document["adapters"]
        return [(row["name"], row["src"]) for row in rows]

    until(lambda: known() == [("poet", "/adapters/poet")], lambda: f"{known()}")

    document = {
        "models": {"base": {"modelUrl": str(base)}},
        "workflow": {"out": ["base", "in"]},
    }
    assert register(server, define(tmp_path, "strict", document)).status == 200
    unknown = predict(server, "strict?adapter=nobody", "x")
    assert (unknown.status, "nobody has not been registered" in unknown.document["error"]) == (424, True)
    assert predict(server, "strict?adapter=poet", "x").body == b"x poet /adapters/poet"
    document["models"]["base"]["dynamicAdapters"] = True
    assert register(server, define(tmp_path, "lenient", document)).status == 200
    assert predict(server, "lenient?adapter=nobody", "x").body == b"x nobody unknown"
    for name in ("strict", "lenient", "poet"):
        unregister(server, name)
    await_only(server, "echo")


# -- what is wrong -----------------------------------------------------------------------------------------

HOSTILE = {
    "megabytes.json": "[" + "1," * 2_000_000 + "1]",
    "deep.json": '{"workflow": {"out": ' + "[" * 50_000 + "]" * 50_000 + "}}",
    "deep.yaml": "workflow: " + "[" * 20_000 + "]" * 20_000,
    "laughs.yaml": "a: &a [x,x,x]\n" + "".join(f"b{i}: &b{i} [*a,*a,*a]\n" for i in range(50)),
    "tag.yaml": "name: !!python/object/apply:os.system ['touch /tmp/owned']\n",
    "number.yaml": "version: " + "9:" * 50_000 + "9\n",
    "keys.json": json.dumps({"workflow": {f"value {i}": ["id", "in"] for i in range(4000)}}),
    "members.json": json.dumps({f"member {i}": 1 for i in range(6000)}),
    "calls.json": json.dumps({"workflow": {"out": ["functionsApply", ["id"] * 15_000, "in"]}}),
    "parameters.json": '{"name": "' + "{model_dir}" * 10_000 + '"}',
    "circle.json": '{"workflow": {"a": ["id", "b"], "b": ["id", "a"], "out": ["id", "a"]}}',
    "java.json": '{"functions": {"f": "com.example.F"}, "workflow": {"out": ["f", "in"]}}',
    "nothing.yaml": "",
    "bytes.json": "\x00\x01\x02",
}


def test_hostile_definitions_are_refused_and_neighbours_answered(
    server: ServerProcess, tmp_path: Path
) -> None:
    for name, text in HOSTILE.items():
        (tmp_path / name).write_text(text)
    with neighbour(server.port), ThreadPoolExecutor(4) as clients:
        answers = dict(
            zip(HOSTILE, clients.map(lambda name: register(server, tmp_path / name), HOSTILE), strict=True)
        )
    for name, answer in answers.items():
        assert (answer.status, answer.document["type"]) == (409, "IllegalArgumentException"), (name, answer)
        assert name in answer.document["message"]
        assert len(answer.body) < 2**16, name
    assert "a -> b -> a" in answers["circle.json"].document["message"]
    assert "def f(input)" in answers["java.json"].document["message"]
    assert there(server) == {"echo"}
    assert not Path("/tmp/owned").exists()


def test_check_names_the_lines(tmp_path: Path) -> None:
    folder = define(tmp_path, "flow", '{"workflow": {\n  "out": ["nobody", "in"]\n}}')
    done = trivium("check", folder)
    assert done.returncode == 1
    assert "workflow.json:2" in done.stdout
    assert "nothing called 'nobody'" in done.stdout


PAGE = Path(__file__).parents[2] / "docs" / "djl.md"
_FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_REQUEST = re.compile(r"^\$ curl -H '([^']+)' -d '([^']+)' localhost:8080(\S+)\n(.*)$", re.MULTILINE)


def test_the_example_of_the_manual_answers_what_it_says(tmp_path: Path) -> None:
    (section,) = (one for one in PAGE.read_text().split("\n## ") if one.startswith("Workflows\n"))
    for name, text in _FILE.findall(section):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    ((field, text, path, answer),) = _REQUEST.findall(section)
    with serve_handlers(tmp_path / "log", tmp_path / "flow") as running:
        said = running.ask(post(path, text.encode(), field.encode() + b"\r\n"))
    assert said.body.decode() == answer


# -- wherever a URL stands ---------------------------------------------------------------------------------


def one_model(url: str, **members: Any) -> str:
    return json.dumps({"models": {"m": url}, "workflow": {"out": ["m", "in"]}, **members})


def test_workflows_stand_wherever_a_models_url_stands(tmp_path: Path) -> None:
    """Sharp edge 23: model store, flags and requests share one classifier; see the versions above for POST /models."""
    model = handler(tmp_path, "m")
    define(tmp_path / "store", "stored", one_model(str(model)))
    glued = {"functions": {"pre": "glue:pre"}, "workflow": {"out": ["m", ["pre", "in"]]}}
    define(tmp_path, "named", one_model("{where}/m", name="own", **glued), file="named.json")
    remote = body(one_model(str(model), name="remote", version="3").encode())
    with web({"/flows/remote.json": remote}) as elsewhere:
        words = (
            "-w",
            f"flow={tmp_path}/named/named.json?where={tmp_path}",
            f"{elsewhere.url}/flows/remote.json",
        )
        variables = {"TRIVIUM_FETCH_FROM": f"{elsewhere.url}/flows"}
        with djl_serving(tmp_path / "log", *words, variables=variables) as djl:
            assert {*djl.infer("GET", "/ping").document} == {"flow", "flow:pre", "remote", "m"}
            for name in ("flow", "remote", "remote/3"):
                assert djl.infer("POST", f"/predictions/{name}", b"x").body == b"x-m"
            again = djl.manage("POST", f"/models?url={elsewhere.url}/flows/remote.json")
            assert (again.status, again.document["message"]) == (
                409,
                "Workflow remote is already registered.",
            )
    with djl_serving(
        tmp_path / "log", "-s", tmp_path / "store", variables={"SERVING_LOAD_MODELS": "ALL"}
    ) as djl:
        assert_stored(djl, tmp_path)


def assert_stored(djl: DjlServing, root: Path) -> None:
    assert djl.infer("POST", "/predictions/stored", b"x").body == b"x-m"
    wish = {"url": str(root / "named" / "named.json"), "model_name": "json"}
    refused = djl.manage("POST", "/models", json.dumps(wish).encode(), "Content-Type: application/json\r\n")
    assert (refused.status, "{where}/m" in refused.document["message"]) == (404, True)
    listed = djl.manage("GET", "/workflows").document["workflows"]
    assert listed == [{"workflowName": "stored"}]
    (described,) = djl.manage("GET", "/workflows/stored").document
    assert [one["modelName"] for one in described["models"]] == ["m"]
    assert djl.manage("PUT", "/workflows/stored?min_worker=1&max_worker=1").status == 200
    assert djl.manage("DELETE", "/workflows/stored").status == 200
    until(lambda: djl.infer("GET", "/ping").document == {}, lambda: "its model is still there")
