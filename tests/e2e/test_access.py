"""Who gets in: each route and RPC of the tables with every kind of key, files of keys that change, web pages.

The tables are those of the protocols; `tests/unit/access` holds them against what the protocols answer.
"""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
from tests.fixtures import models
from tests.harness.commands import refusal, trivium
from tests.harness.keys import EXPIRED, KEYS, WRONG, MadeKey, key_file
from tests.harness.raw_http import Answer, ask, get, infer_request, post, tensor
from tests.harness.server_process import (
    COMMAND,
    LoggedProcess,
    ServerProcess,
    environment,
    serve,
    started,
    until,
)
from tests.harness.triton_grpc import given
from tritonclient.grpc import service_pb2

from trivium.catalogue import CATALOGUE
from trivium.types.access import AccessScope, Endpoint
from trivium.types.listeners import Listener, Route, Transport, is_below

TELLS = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            print("parameters:", request.parameters(), flush=True)
        return [
            pb.InferenceResponse([pb.Tensor("y", pb.get_input_tensor_by_name(request, "x").as_numpy())])
            for request in requests
        ]
"""
ENDS = 'input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }\noutput { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\n'
DENIED, UNKNOWN = (401, 403), (404, 405, 501)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    models.identity(root, "echo", rows=16)
    place = root / "tells" / "1"
    place.mkdir(parents=True)
    (place / "model.py").write_text(TELLS)
    (root / "tells" / "config.pbtxt").write_text('backend: "python"\n' + ENDS)
    return root


def rows(profile: str) -> Iterator[Endpoint]:
    """The rows of the protocols that own the routes of a profile, over HTTP."""
    (listener,) = [
        each
        for each in CATALOGUE.profiles[profile].listeners
        if each.transport is Transport.HTTP and each.name == "HTTP"
    ]
    for route in listener.routes:
        for row in CATALOGUE.http[route.protocol].ENDPOINTS:
            if is_below(route.prefix, row.path.removesuffix("...")) and _owner(listener, row) == route:
                yield row


def _owner(listener: Listener, row: Endpoint) -> Route | None:
    """The route that a row's path belongs to: one that says its end, or its first segment, or any end."""
    path = row.path.removesuffix("...")
    fitting = [route for route in listener.routes if is_below(route.prefix, path)]
    return min(fitting, key=lambda route: (route.prefix[:1] == ".", "..." not in route.prefix), default=None)


def request(row: Endpoint, fields: bytes = b"") -> bytes:
    path = re.sub(r"{(\w+)}", r"\1", row.path.removesuffix("/..."))
    method = ("POST" if row.method == "*" else row.method).encode()
    return get(path, fields, method) if method != b"POST" else post(path, b"{}", fields)


def shown(key: MadeKey | None) -> bytes:
    return b"" if key is None else key.header


def may(key: MadeKey, scope: AccessScope) -> bool:
    return scope.value in key.scopes or "manage" in key.scopes


def check(answer: Answer, scope: AccessScope, key: MadeKey | None, where: str) -> None:
    if scope is AccessScope.OPEN:
        assert answer.status not in DENIED, (where, key, answer)
    elif key in (None, EXPIRED, WRONG):
        assert answer.status == 401, (where, key, answer)
        assert answer.fields["www-authenticate"].startswith("Bearer"), where
    elif key is not None and not may(key, scope):
        assert answer.status == 403, (where, key, answer)
        assert "www-authenticate" not in answer.fields
    else:
        assert answer.status not in DENIED, (where, key, answer)


SWITCHED_ON = {
    "torchserve": ("--torchserve-kserve",),
    "torchserve-command": ("--torchserve-open-inference", "--torchserve-kserve"),
}
"""Profile -> what switches on all of its routes."""

STATES = (None, WRONG, EXPIRED, *KEYS.values())


@pytest.mark.parametrize("profile", CATALOGUE.profiles)
def test_each_route_with_every_kind_of_key(profile: str, folder: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path / "keys.toml")
    words = (
        "--keys",
        keys,
        "--profile",
        profile,
        "--client-shared-memory",
        "--console",
        *SWITCHED_ON.get(profile, ()),
    )
    with serve(tmp_path / "log", *words, folder) as server:
        asked = 0
        for row in sorted(set(rows(profile)), key=str):
            for key in STATES:
                answer = ask(server.port, request(row, shown(key)))
                check(answer, row.scope, key, f"{row.method} {row.path}")
                asked += 1
        assert asked >= 6 * (40 if profile != "triton" else 30)
        served = {row.path for row in rows(profile)}
        for path in {
            "/",
            "/nowhere",
            "/v2/nowhere",
            "/v2/models/echo/nowhere",
            "/v2/health",
            "/admin",
        } - served:
            for key in (None, WRONG, EXPIRED):
                assert server.ask(get(path, shown(key))).status == 401
            for key in KEYS.values():
                assert server.ask(get(path, shown(key))).status in UNKNOWN


def statuses(server: ServerProcess, method: str, message: bytes, key: MadeKey | None) -> grpc.StatusCode:
    """How a call ends; a stream sends nothing."""
    with grpc.insecure_channel(server.grpc_address) as channel:
        metadata = () if key is None else key.metadata
        try:
            if method.endswith("StreamInfer"):
                for _ in channel.stream_stream(method)(iter([message]), metadata=metadata, timeout=60):
                    pass
            else:
                channel.unary_unary(method)(message, metadata=metadata, timeout=60)
        except grpc.RpcError as error:
            return error.code()  # type: ignore[no-any-return]
    return grpc.StatusCode.OK


def test_each_rpc_with_every_kind_of_key(folder: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path / "keys.toml")
    denied = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
    with serve(tmp_path / "log", "--keys", keys, folder) as server:
        for method, scope in CATALOGUE.rpc["v2"].SCOPES.items():
            for key in STATES:
                status = statuses(server, method, b"", key)
                if scope is not AccessScope.OPEN and key in (None, WRONG, EXPIRED):
                    assert status is denied[0], (method, key)
                elif scope is AccessScope.OPEN or may(key, scope):
                    assert status not in denied, (method, key)
                else:
                    assert status is denied[1], (method, key)
        for method in ("/inference.GRPCInferenceService/New", "/no.Service/Any"):
            assert statuses(server, method, b"", None) is denied[0]
            assert statuses(server, method, b"", KEYS["infer"]) is grpc.StatusCode.UNIMPLEMENTED


def test_a_credential_that_comes_twice_opens_nothing(folder: Path, tmp_path: Path) -> None:
    """Over HTTP and gRPC alike, whichever of both would open, and also where both are the same."""
    keys, good = key_file(tmp_path / "keys.toml"), KEYS["manage"]
    rule = "metadata:admin-key=secret"
    words = ("--keys", keys, "--restricted-apis", rule, "--restricted-rpcs", rule)
    admin = ("admin-key", "secret")
    ready, metadata = (
        f"/inference.GRPCInferenceService/{name}" for name in ("ServerReady", "ServerMetadata")
    )
    with serve(tmp_path / "log", *words, folder) as server:

        def http(path: str, *fields: tuple[str, str]) -> int:
            return server.ask(
                get(path, "".join(f"{name}: {value}\r\n" for name, value in fields).encode())
            ).status

        def rpc(method: str, *fields: tuple[str, str]) -> grpc.StatusCode:
            with grpc.insecure_channel(server.grpc_address) as channel:
                try:
                    channel.unary_unary(method)(b"", metadata=fields, timeout=60)
                except grpc.RpcError as error:
                    return error.code()  # type: ignore[no-any-return]
            return grpc.StatusCode.OK

        (once,) = good.metadata
        assert (http("/v2", once, admin), rpc(metadata, once, admin)) == (200, grpc.StatusCode.OK)
        for other in (good, WRONG, EXPIRED, KEYS["infer"]):
            for pair in ((*good.metadata, *other.metadata), (*other.metadata, *good.metadata)):
                assert http("/v2/models/echo", *pair) == 400, pair
                assert rpc(ready, *pair) is grpc.StatusCode.UNAUTHENTICATED, pair
        for value in ("secret", "other", ""):
            for pair in ((admin, ("admin-key", value)), (("admin-key", value), admin)):
                assert http("/v2", once, *pair) == 403, pair
                assert rpc(metadata, once, *pair) not in (grpc.StatusCode.OK, None), pair


def test_settings_are_read_by_some_and_written_by_managers(folder: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path / "keys.toml")
    trace, log = service_pb2.TraceSettingRequest(), service_pb2.LogSettingsRequest()
    trace.settings["trace_rate"].value.append("7")
    log.settings["log_verbose_level"].uint32_param = 1
    words = ("--keys", keys, "--trace-file", tmp_path / "traces")
    with serve(tmp_path / "log", *words, folder) as server:
        for name, change in (("TraceSetting", trace), ("LogSettings", log)):
            method = f"/inference.GRPCInferenceService/{name}"
            assert statuses(server, method, b"", KEYS["observe"]) is grpc.StatusCode.OK
            written = change.SerializeToString()
            assert statuses(server, method, written, KEYS["observe"]) is grpc.StatusCode.PERMISSION_DENIED
            assert statuses(server, method, written, KEYS["infer"]) is grpc.StatusCode.PERMISSION_DENIED
        traced = get("/v2/trace/setting", KEYS["observe"].header)
        assert server.ask(traced).document["trace_rate"] == "1000"
        method = "/inference.GRPCInferenceService/TraceSetting"
        assert statuses(server, method, trace.SerializeToString(), KEYS["manage"]) is grpc.StatusCode.OK
        assert server.ask(traced).document["trace_rate"] == "7"


def test_no_key_is_found_anywhere(folder: Path, tmp_path: Path) -> None:
    keys, traces, access = key_file(tmp_path / "keys.toml"), tmp_path / "traces", tmp_path / "access"
    words = ("--keys", keys, "--log-level", "debug", "--access-log", access, "--trace-file", traces)
    words += ("--trace-levels", "timestamps,tensors", "--trace-rate", "1")
    words += ("--forward-headers", ".*", "--forward-metadata", ".*")
    body = infer_request("tells", tensor("x", [1.0, 2.0, 3.0, 4.0], [4]))
    with serve(tmp_path / "log", *words, folder) as server:
        for key in STATES:
            head, _, rest = body.partition(b"\r\n")
            status = server.ask(head + b"\r\n" + shown(key) + b"X-Seen: yes\r\n" + rest).status
            assert status in (200, *DENIED)
            server.ask(get("/metrics", shown(key)))
            server.ask(get("/v2/models/tells/config", shown(key)))
            server.ask(post("/v2/repository/models/no/load", b"{}", shown(key)))
            server.ask(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n" + shown(key) * 2 + b"\r\n")
        client = triton_grpc.InferenceServerClient(server.grpc_address)
        array = np.array([1, 2, 3, 4], np.float32)
        client.infer("tells", [given("x", array)], headers=dict(KEYS["infer"].metadata) | {"x-seen": "yes"})
        client.close()
        metrics = server.ask(get("/metrics", KEYS["observe"].header)).body.decode()
        assert server.said().count('"x-seen":"yes"') == 3  # parameters do arrive
    checked = trivium("check", folder)
    assert checked.returncode == 0
    written = [server.said(), access.read_text(), metrics, checked.stdout]
    written += [path.read_text() for path in tmp_path.glob("traces*")]
    assert len(written) > 4
    for text in written:
        assert text
        for key in (*KEYS.values(), EXPIRED, WRONG):
            assert key.text not in text
            assert base64.b64encode(key.text.encode()).decode() not in text
        assert "bearer" not in text.lower()


def test_a_file_that_changes(folder: Path, tmp_path: Path) -> None:
    old, new = KEYS["infer"], MadeKey("new", "another-key-0123456789", ("infer",))
    keys = key_file(tmp_path / "keys.toml", old)
    asked = "/v2/models/echo"
    with serve(tmp_path / "log", "--keys", keys, folder) as server:

        def status(key: MadeKey) -> int:
            return server.ask(get(asked, key.header)).status

        assert (status(old), status(new)) == (200, 401)
        with_new = key_file(tmp_path / "next", new)
        with_new.replace(keys)
        until(lambda: status(new) == 200, server.said)
        assert status(old) == 401
        keys.write_text("[[key]]\nname = 'x'\n")
        until(lambda: "stay in force" in server.said(), server.said)
        assert re.search(r"keys\.toml:1: key\[0\]\.sha256: no text; expected 64 hexadecimal", server.said())
        assert status(new) == 200
        keys.unlink()
        until(lambda: server.said().count("stay in force") == 2, server.said)
        assert (status(new), status(old)) == (200, 401)
        key_file(keys, old)
        until(lambda: status(old) == 200, server.said)
        assert status(new) == 401


def test_a_key_of_the_command_opens_and_expires(folder: Path, tmp_path: Path) -> None:
    made = trivium("key", "ci", "--scope", "observe", "--expires", "2099-01-01")
    table, _, rest = made.stdout.partition("\nThe key of ci")
    text = rest.split("\n\n")[1].strip()
    assert text not in table
    keys = tmp_path / "keys.toml"
    keys.write_text(table)
    header = b"Authorization: bearer  " + text.encode() + b" \r\n"
    with serve(tmp_path / "log", "--keys", keys, folder) as server:
        assert server.ask(get("/metrics", header)).status == 200
        assert "'ci' is for observe" in server.ask(get("/v2/models/echo", header)).error
    assert "no date" in refusal("key", "ci", "--expires", "'soon'")


def test_what_contradicts_itself_or_is_too_wide(folder: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path / "keys.toml")
    said = refusal("serve", folder, "--host", "0.0.0.0")
    assert "--keys" in said
    assert "--open" in said
    assert "--open-management" in refusal(
        "serve", folder, "--keys", keys, "--open-management", "--http-port", "0"
    )
    assert str(tmp_path / "none") in refusal("serve", folder, "--keys", tmp_path / "none", "--http-port", "0")
    with serve(tmp_path / "log", folder, "--host", "0.0.0.0", "--keys", keys) as server:
        assert "Keys travel in the clear over HTTP and gRPC" in server.said()
        load = "/v2/repository/models/echo/load"
        assert server.ask(post(load, b"{}", KEYS["infer"].header)).status == 403
        assert server.ask(post(load, b"{}", KEYS["manage"].header)).status == 200


def test_tritons_command_stays_open_and_says_so_and_takes_keys_by_the_variable(
    folder: Path, tmp_path: Path
) -> None:
    words = [*COMMAND, "tritonserver", "--model-repository", str(folder), "--model-control-mode", "explicit"]
    words += ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]
    line = re.compile(r"Started HTTPService at [\d.]+:(\d+)")
    load = "/v2/repository/models/echo/load"
    for variables, statuses_expected in (({}, (200, 200)), ({"TRIVIUM_KEYS": "keys"}, (401, 200))):
        keys = key_file(tmp_path / "keys.toml")
        env = dict(environment()) | {name: str(keys) for name in variables}
        with started(tmp_path / "log", *words, variables=env) as process:
            server = LoggedProcess(process, tmp_path / "log")
            port = int(server.await_line(line)[1])
            said = (
                ask(port, post(load, b"{}")).status,
                ask(port, post(load, b"{}", KEYS["manage"].header)).status,
            )
            assert said == statuses_expected
            assert ("without keys" in server.said()) == (not variables)


@pytest.mark.parametrize("is_expecting", [False, True])
def test_a_body_without_a_key_is_not_taken(is_expecting: bool, folder: Path, tmp_path: Path) -> None:
    keys = key_file(tmp_path / "keys.toml")
    with serve(tmp_path / "log", folder, "--keys", keys) as server:
        expect = b"Expect: 100-continue\r\n" if is_expecting else b""
        head = (
            b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n"
            + expect
            + b"\r\n"
        )
        answer = server.ask(head)
        assert (answer.status, answer.fields["connection"]) == (401, "close")


PAGES = [
    (b"Host: localhost:8080\r\n", 200),
    (b"Host: 127.0.0.1\r\n", 200),
    (b"Host: [::1]:8080\r\n", 200),
    (b"Host: models.example.org\r\n", 200),
    (b"Host: MODELS.example.org:80\r\n", 200),
    (b"Host: evil.example.org\r\n", 403),
    (b"Host: localhost.evil.example.org\r\n", 403),
    (b"Host: 127.0.0.1.evil.example.org\r\n", 403),
    (b"Host: \r\n", 403),
    (b"Host: localhost\r\nOrigin: http://localhost\r\n", 200),
    (b"Host: localhost:8080\r\nOrigin: http://localhost:8080\r\n", 200),
    (b"Host: models.example.org\r\nOrigin: https://models.example.org\r\n", 200),
    (b"Host: localhost:8080\r\nOrigin: http://localhost:8081\r\n", 403),
    (b"Host: localhost:8080\r\nOrigin: http://127.0.0.1:8080\r\n", 403),
    (b"Host: localhost\r\nOrigin: null\r\n", 403),
    (b"Host: localhost\r\nOrigin: \r\n", 403),
    (b"Host: localhost\r\nOrigin: https://evil.example.org\r\n", 403),
    (b"Host: localhost\r\nOrigin: file://localhost\r\n", 403),
]


def raw(method: bytes, path: bytes, fields: bytes, body: bytes = b"{}") -> bytes:
    return b"%s %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (method, path, fields, len(body), body)


def test_what_web_pages_of_others_may(folder: Path, tmp_path: Path) -> None:
    with serve(tmp_path / "log", folder, "--allowed-hosts", "models.example.org, other") as server:
        for fields, status in PAGES:
            for path in (b"/v2/repository/models/echo/load", b"/v2/logging"):
                assert server.ask(raw(b"POST", path, fields)).status == status, fields
            assert server.ask(raw(b"POST", b"/v2/repository/index", fields)).status == 200
            assert server.ask(raw(b"GET", b"/v2/health/ready", fields)).status == 200
        body = json.dumps({"inputs": [tensor("x", [1, 2, 3, 4], [1, 4])]}).encode()
        asked = raw(b"POST", b"/v2/models/echo/infer", PAGES[-1][0].replace(b"localhost", b"evil"), body)
        assert server.ask(asked).status == 200
    assert "no host name" in refusal("serve", folder, "--allowed-hosts", "http://x", "--http-port", "0")


def test_tritons_profile_lets_pages_in_until_hosts_are_named(folder: Path, tmp_path: Path) -> None:
    evil = raw(b"POST", b"/v2/repository/models/echo/load", b"Host: evil\r\nOrigin: http://evil\r\n")
    for words, status in (((), 200), (("--allowed-hosts", "x"), 403)):
        with serve(tmp_path / "log", folder, "--profile", "triton", *words) as server:
            assert server.ask(evil).status == status
