"""Files that describe models or keys: as texts, and as folders that a format makes models of."""

import atexit
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.fuzz import mutations
from tests.fuzz.target import Change, Target
from tests.harness.djl_folders import HANDLER, TORCHSERVE
from tests.harness.keys import EXPIRED, KEYS
from tests.harness.triton_configs import BATCHES, GPUS, OTHER_POLICIES, RICH

from trivium.access.keys import parse_keys
from trivium.catalogue import CATALOGUE
from trivium.codecs import java_properties as properties
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.servers.djl.words.settings import DjlSettings
from trivium.servers.torchserve.archive.repository import FORMAT as TORCHSERVE_FORMAT
from trivium.servers.torchserve.command.settings import exposure, settle
from trivium.servers.torchserve.command.sources import gather
from trivium.servers.torchserve.words.manifest import read_manifest
from trivium.servers.torchserve.words.model_config import read_model_config
from trivium.servers.triton.repository.repository import FORMAT as TRITON
from trivium.servers.triton.words.checks import check
from trivium.servers.triton.words.reader import read_config
from trivium.types.errors import ServeError
from trivium.types.interfaces import Format
from trivium.types.spec import Defaults

DEFAULTS = Defaults(queue_items=17, cpus=3)

# -- config.pbtxt ------------------------------------------------------------------------------------------

SMALL = """name: "m"
backend: "identity"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
dynamic_batching { max_queue_delay_microseconds: 100 }
parameters { key: "k" value: { string_value: "v\\303\\244" } }
"""
PBTXT = tuple(text.encode() for text in (SMALL, SMALL, RICH, BATCHES, *OTHER_POLICIES))
PBTXT_TOKENS = (
    b"{", b"}", b"[", b"]", b"<", b">", b":", b",", b";", b"#", b'"', b"'", b"\\", b'"\\u12"', b'"\\ud800"',
    b'"\\400"', b"\\x",
    b"input", b"output", b"dims: -1", b"data_type: TYPE_STRING", b"reshape { shape: [ ] }", b"TYPE_FP33", b"1e400",
    b"-inf", b"nan",
    b"0x", b"0777777777777777777777777", b"1_0", b"+1", b"1f", b"true", b"max_batch_size: -1",
    b"sequence_batching { }",
    b"ensemble_scheduling { step [ { model_name: 'a' } ] }", b"version_policy { all { } }", b"model_warmup { }",
    b"[type.googleapis.com/x] { }", b"\xef\xbb\xbf", b"\0", b"\xff", b"\xe2\x80\xae", b'"a" "b"',
)  # fmt: skip
BLOCKS = ((b"{", b"}"), (b"<", b">"), (b"[", b"]"), (b"input {", b"}"), (b"parameters { value {", b"} }"))


def read_pbtxt(data: bytes, chance: random.Random) -> None:
    check(read_config("config.pbtxt", data), GPUS)


# -- .properties -------------------------------------------------------------------------------------------

PROPERTIES = (
    b"engine=Python\nbatch_size=4\nmax_batch_delay=100\nminWorkers=1\noption.entryPoint=model.py\n",
    b"# a comment\n! and one\noption.model_id = x\\\n  y\nkey\\ with\\ blank : \\u00e4\\t\\n\n"
    b"empty\nload_on_devices=0;cpu\n",
    "option.env=A=1,B=2\njob_queue_size=10\r\nk\\u00f6nig=ja\rlast=ä".encode(),
)
PROPERTY_TOKENS = (
    b"\\", b"\\\n", b"\\u", b"\\ud800", b"\\u12", b"=", b":", b"\n", b"\r", b"\f", b"#", b"!", b"option.",
    b"engine=", b"-1", b"*", b"gpu9",
    b"\xff", b"\xef\xbb\xbf", b"\0", b"option.env=A=,=,B", b"load_on_devices=;;gpu999", b"batch_size=99999999999",
    "²".encode(), "٣".encode(),
)  # fmt: skip


def read_properties(data: bytes, chance: random.Random) -> None:
    settings = DjlSettings(properties.read("serving.properties", data))
    for key in ("batch_size", "max_batch_delay", "minWorkers", "job_queue_size"):
        settings.number([key], 1)
    settings.environment("option.env")
    settings.devices(2)
    settings.options()
    settings.text(["option.model_id", "engine"])


TORCHSERVE_PROPERTIES = (
    b"inference_address=http://127.0.0.1:8080\nmanagement_address=unix:/tmp/x\nmetrics_address=https://h\nmodel_store=/x\n",
    b'models={"m": {"1.0": {"minWorkers": 1, "batchSize": 4}}}\nload_models=m,n=m.mar,https://h/x.mar\n'
    b"allowed_urls=https://a\\\\.b/.*,file://.*\n",
    b'model_snapshot={"name": "x", "models": {"m": {"1.0": {"marName": "m.mar", "defaultVersion": true}}}}\n'
    b"blacklist_env_vars=.*KEY.*\njob_queue_size=$$NUMBER$$\nenable_envvars_config=true\n",
)
TORCHSERVE_TOKENS = (
    *PROPERTY_TOKENS, b"$$", b"$$NUMBER$$", b"{", b"}", b"[", b"]", b'"1.0":', b"https://", b"http://[", b"unix:",
    b":99999", b"load_models=", b"all", b"../", b"enable_grpc_ssl=true\n", b"number_of_gpu=0\n", b"(?P<",
    b"a{9999999999}",
    b"\\u0000", b"token_expiration_min=", b"1e9", b"allowed_urls=", b"trivium_fetch_from=s3://b/\n",
)  # fmt: skip


def read_torchserve_properties(data: bytes, chance: random.Random) -> None:
    found = properties.read("config.properties", data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a pattern that a later Python reads otherwise
        sources = gather(found, {}, {"NUMBER": "7", "TS_JOB_QUEUE_SIZE": data[:20].decode("latin-1")})
        try:
            settled = settle(CATALOGUE, sources, lambda: ("c", "k"), (2, chance.randrange(3)), {})
        except ServeError:
            return
    exposure(settled)
    settled.rules.of_model("m", "1.0")


# -- MANIFEST.json, model-config.yaml ----------------------------------------------------------------------

_MODEL = {"modelName": "m", "modelVersion": "1.0", "handler": "handler.py:H", "serializedFile": "m.pt"}
MANIFESTS = tuple(
    json.dumps(document).encode()
    for document in (
        {"createdOn": "today", "runtime": "python", "model": _MODEL, "archiverVersion": "0.9"},
        {"runtime": "python3", "model": {**_MODEL, "configFile": "c.yaml", "requirementsFile": "r.txt"}},
        {"runtime": "LSP", "model": {"modelName": "m", "modelVersion": "2", "handler": "image_classifier"}},
    )
)
MANIFEST_TOKENS = (
    b'"model"',
    b'"handler"',
    b'"../x"',
    b'"/x"',
    b'"a\\\\b"',
    b'"runtime"',
    b":",
    *mutations.JSON_VALUES,
)


def read_manifest_file(data: bytes, chance: random.Random) -> None:
    read_manifest("MANIFEST.json", data)


def rebuilt_json(entry: bytes, change: Change, chance: random.Random) -> bytes:
    return mutations.json_changed(entry, chance)


YAML = (
    b"minWorkers: 1\nmaxWorkers: 2\nbatchSize: 4\nmaxBatchDelay: 100\nresponseTimeout: 120\ndeviceType: cpu\n",
    b"handler:\n  a: [1, 2.5, true, null, 'x']\n  b: &anchor {c: 2001-12-14}\n  d: *anchor\n"
    b"parallelType: none\ndeviceIds: [0, 1]\n",
    b"text: |\n  several\n  lines\nfolded: >-\n  a\n  b\nset: !!set {a, b}\n"
    b"binary: !!binary aGVsbG8=\n? complex\n: 1\n",
    b"when: 2001-12-14t21:59:43.10-05:00\nbase60: 1:30\nfloat: .inf\nint: 0x1F\noctal: 0o17\nmerge:\n  <<: {x: 1}\n",
)
YAML_TOKENS = (
    b"!!python/object/apply:os.system [x]", b"!!bool x", b"!!int ''", b"!!int x", b"!!float ''", b"!!float x",
    b"!!timestamp x",
    b"!!timestamp ''", b"!!null x", b"!!binary x", b"!!set [a]", b"!!omap [a: 1, b]", b"!!pairs {a: 1}",
    b"!!map []", b"!!seq {}",
    b"!!str {}", b"!x", b"!", b"&a ", b"*a", b"<<: *a", b"<<: 1", b"<<: [1]", b"? ", b"- ", b": ", b"\n", b"---\n",
    b"...\n", b"%YAML 9.9\n",
    b"%TAG ! x\n", b"|\n", b">9\n", b'"\\x', b'"\\U00110000"', b'"\\ud800"', b"'", b"\t", b"{", b"}", b"[", b"]",
    b",", b"0b", b"0x", b"0o8", b"1:1",
    b"1:99", b"2001-99-99", b"0000-01-01", b"2001-01-01 25:00:00", b"2001-01-01 00:00:00 +99:99",
    b"1" + b":1" * 3000, b"\xff\xfe", b"\0",
    b"1_", b"_", b"+", b"=", b"~", b".nan", b"1e400", b"minWorkers: ", b"deviceIds: ",
)  # fmt: skip
YAML_NESTS = ((b"[", b"]"), (b"{a: ", b"}"), (b"- ", b""), (b"? ", b""), (b"[[", b"]"))


def read_yaml(data: bytes, chance: random.Random) -> None:
    read_model_config("model-config.yaml", data)


# -- workflow.json, workflow.yaml --------------------------------------------------------------------------

FLOW = {
    "name": "flow",
    "version": "0.1",
    "batchSize": 2,
    "models": {
        "m": "{model_dir}/m?a=b",
        "n": {"modelUrl": "s3://b/n.zip", "options": {"a": 1}, "arguments": {"b": True}, "minWorkers": 1},
    },
    "functions": {"f": "glue:f", "g": "glue:G"},
    "configs": {"f": {"x": [1.5]}, "adapters": {"a": {"model": "m", "src": "/a", "options": {"r": "1"}}}},
    "workflow": {
        "x": ["f", "in", ["id", "in"]],
        "y": ["ensemble", ["functionsApply", ["m", "n"], "x"]],
        "out": ["g", "y", ["adapter", "a", "x"]],
    },
}
FLOWS = tuple(
    json.dumps(one, indent=indent).encode() for one, indent in ((FLOW, 1), (FLOW, None), ({}, None))
)
FLOW_TOKENS = (
    b'"in"', b'"out"', b'"id"', b'"m"', b'"f"', b'"x"', b'"adapter"', b'"functionsApply"', b'"ensemble"',
    b'"workflow":', b'"models":', b'"functions":', b'"configs":', b'"modelUrl":', b'"loadOnDevices": "gpu9"',
    b"{model_dir}", b"{x}", b"/x.json", b"djl://x", b"file:///", b"com.x.F", b"a:b:c", b'["out"]', b"<<", b"/",
    *mutations.JSON_VALUES,
)  # fmt: skip
YAML_FLOW = b"""name: flow
models: {m: /m}
functions:
  f: glue:f
workflow:
  x: [m, in]
  out: [f, x, [id, in]]
"""


# -- the file of keys --------------------------------------------------------------------------------------

KEY_FILES = (
    "".join(key.table for key in KEYS.values()).encode(),
    EXPIRED.table.encode(),
    EXPIRED.table.replace("2020-01-01", "2027-01-31T00:00:00+01:00").encode(),
)
KEY_TOKENS = (
    b"[[key]]", b"[key]", b"[[a.b]]", b"name = ", b"sha256 = ", b"scopes = ", b"expires = ", b'"infer"', b'"""',
    b"'''", b"\\u", b"\\ud800", b"=",
    b"1979-05-27", b"0001-01-01T00:00:00+23:59", b"9999-12-31T23:59:59-23:59", b"07:32:00", b"inf", b"nan", b"0x",
    b"1__0", b"1e400",
    b"9" * 5000, b"a.b.c.d = 1\n", b"{ a = 1 }", b"#", b"\r", b"\0",
)  # fmt: skip


def read_keys(data: bytes, chance: random.Random) -> None:
    parse_keys(data.decode(errors="replace"), "keys.toml")


# -- folders -----------------------------------------------------------------------------------------------


@cache
def scratch() -> Path:
    """A folder of this process."""
    folder = tempfile.TemporaryDirectory(prefix="fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def folder_of(kind: str, **files: str) -> Path:
    """A model's folder with these files, made once."""
    place = scratch() / kind / "m"
    if not place.exists():
        for name, text in files.items():
            path = place / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return place


def through(form: Format, place: Path, file: str, data: bytes) -> None:
    """A format reads the folder with this file in it. What a format did not expect, it says and logs itself."""
    path = place / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for broken in form.read(place, DEFAULTS).unreadable:
        for finding in broken.findings:
            assert "reading it failed" not in finding.found, str(finding)


def reading(form: Format, kind: str, file: str, **files: str) -> Callable[[bytes, random.Random], None]:
    def read(data: bytes, chance: random.Random) -> None:
        through(form, folder_of(kind, **files), file, data)

    return read


MANIFEST = MANIFESTS[1].decode()
GLUE = "def f(a, b=None): pass\nclass G:\n    def __call__(self, a, b): pass\n"

TARGETS = (
    Target("pbtxt", PBTXT, read_pbtxt, tokens=PBTXT_TOKENS, nests=BLOCKS),
    Target("properties", PROPERTIES, read_properties, tokens=PROPERTY_TOKENS),
    Target(
        "torchserve_properties", TORCHSERVE_PROPERTIES, read_torchserve_properties, tokens=TORCHSERVE_TOKENS
    ),
    Target("manifest", MANIFESTS, read_manifest_file, tokens=MANIFEST_TOKENS, rebuild=rebuilt_json),
    Target("yaml", YAML, read_yaml, tokens=YAML_TOKENS, nests=YAML_NESTS),
    Target("keys", KEY_FILES, read_keys, tokens=KEY_TOKENS),
    Target(
        "triton_folder",
        PBTXT[:3],
        reading(TRITON, "triton", "config.pbtxt", **{"1__model_py": ""}),
        tokens=PBTXT_TOKENS,
        nests=BLOCKS,
    ),
    Target(
        "djl_folder",
        PROPERTIES,
        reading(DjlFormat(), "djl", "serving.properties", model_py=HANDLER),
        tokens=PROPERTY_TOKENS,
    ),
    Target(
        "djl_workflow",
        FLOWS,
        reading(DjlFormat(), "djl_workflow", "workflow.json", glue_py=GLUE),
        tokens=FLOW_TOKENS,
        rebuild=rebuilt_json,
    ),
    Target(
        "djl_workflow_yaml",
        (YAML_FLOW, *YAML),
        reading(DjlFormat(), "djl_workflow_yaml", "workflow.yaml", glue_py=GLUE),
        tokens=(*YAML_TOKENS, b"workflow: ", b"models: ", b"[f, ", b"out", b"in"),
        nests=YAML_NESTS,
    ),
    Target(
        "torchserve_folder",
        MANIFESTS[:2],
        reading(TORCHSERVE_FORMAT, "torchserve", "MAR-INF/MANIFEST.json", handler_py=TORCHSERVE),
        tokens=MANIFEST_TOKENS,
        rebuild=rebuilt_json,
    ),
    Target(
        "torchserve_config",
        YAML,
        reading(
            TORCHSERVE_FORMAT,
            "torchserve_config",
            "c.yaml",
            handler_py=TORCHSERVE,
            **{"MAR-INF__MANIFEST.json": MANIFEST},
        ),
        tokens=YAML_TOKENS,
        nests=YAML_NESTS,
    ),
)
