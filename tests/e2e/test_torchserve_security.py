"""TorchServe's safe defaults under attack: every route and RPC of the tables with every kind of key, keys that are
none, what lands in the logs, YAML that would make objects, disks that are full.
"""

import re
import socket
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from tests.harness.ports import free_port
from tests.harness.raw_http import Answer, ask, connect, get, post
from tests.harness.server_process import SECONDS, until
from tests.harness.torchserve_command import (
    TorchServeFolder,
    TorchServeProcess,
    said,
    torchserve,
)

from trivium.catalogue import CATALOGUE
from trivium.profiles import OWN_CONSOLE
from trivium.server_record import CONSOLE
from trivium.servers.torchserve.wire.grpc import STREAM
from trivium.servers.torchserve.wire.kserve import ENDPOINTS as KSERVE
from trivium.servers.torchserve.wire.management_routes import ENDPOINTS as MANAGEMENT
from trivium.servers.torchserve.wire.routes import ENDPOINTS as INFERENCE
from trivium.types.listeners import Listener, Role, Transport, is_below

ECHO = "def handle(data, context):\n    return data and [bytes(row['body'], 'utf-8') for row in data]\n"
PRINTS = "def handle(data, context):\n    print(data, flush=True)\n    return data and [b'hi'] * len(data)\n"
PROFILE = CATALOGUE.profiles["torchserve-command"]
APIS = {
    "HTTP": "Inference",
    "management": "Management",
    "metrics": "Metrics",
    "gRPC": "gRPC inference",
    "gRPC management": "gRPC management",
}
"""Listener of the profile -> the name by which the log says where it is."""

KEY_OF = {
    "HTTP": "inference",
    "gRPC": "inference",
    "management": "management",
    "gRPC management": "management",
}
OTHERS = {"inference": "management", "management": "inference"}
WORDS = "Token Authorization failed. Token either incorrect, expired, or not provided correctly"
OPEN_PATHS = (("OPTIONS", "/"), ("*", "/api-description"), ("*", "/api-description/"))
"""What needs no key, as in the original; OPTIONS of a description is one."""

BY_NAME = {"": "/", "token": "/token?type=inference", "wfpredict": "/wfpredict/w", "v2": "/v2"}
"""Prefix that no table of endpoints has a row for, or none alone -> what is asked below it."""


@pytest.fixture
def folder(tmp_path: Path) -> TorchServeFolder:
    return TorchServeFolder(tmp_path)


def bearer(key: str) -> str:
    return f"Authorization: Bearer {key}\r\n"


# -- every route and every RPC -----------------------------------------------------------------------------


def listeners(transport: Transport) -> list[Listener]:
    return [
        replace(each, routes=[route for route in each.routes if route.protocol != CONSOLE])
        for each in PROFILE.listeners
        if each.transport is transport and each.name != OWN_CONSOLE  # which the command has no flag for
    ]


def rows(listener: Listener) -> list[tuple[str, str]]:
    """Method and path of everything that the tables have for a listener."""
    found = [
        (row.method, re.sub(r"{(\w+)}", r"\1", row.path.removesuffix("/...")))
        for route in listener.routes
        for row in CATALOGUE.http[route.protocol].ENDPOINTS
        if is_below(route.prefix, row.path.removesuffix("...").rstrip("/") or "/")
    ]
    found += [("GET", BY_NAME[route.prefix]) for route in listener.routes if route.prefix in BY_NAME]
    return sorted(set(found))


def test_the_sweep_has_every_route_of_the_profile() -> None:
    for listener in listeners(Transport.HTTP):
        paths = [path for _, path in rows(listener)]
        for route in listener.routes:
            assert any(is_below(route.prefix, path.partition("?")[0]) for path in paths), route
    assert {*CATALOGUE.http["torchserve"].ENDPOINTS} == {*INFERENCE, *KSERVE, *MANAGEMENT}
    swept = {path for listener in listeners(Transport.HTTP) for _, path in rows(listener)}
    for row in (*INFERENCE, *KSERVE, *MANAGEMENT):
        assert re.sub(r"{(\w+)}", r"\1", row.path.removesuffix("/...")) in swept, row


def asked(method: str, path: str, key: str) -> bytes:
    fields = bearer(key).encode() if key else b""
    method = "POST" if method == "*" else method
    return post(path, b"{}", fields) if method == "POST" else get(path, fields, method.encode())


def is_refused(answer: Answer) -> bool:
    """Whether it is the answer to who shows no key that holds."""
    if answer.status != 400 or not answer.body.startswith(b"{"):
        return False
    assert "www-authenticate" not in answer.fields
    text = answer.body.decode()  # clients of other protocols find it in another member
    return WORDS in text or WORDS.replace("Authorization", "Authentication") in text


def needed(listener: Listener, path: str) -> str:
    """The purpose of the key that opens a path; of the metrics none does, and any will do."""
    renews = listener.name == "management" and path.startswith("/token")
    return "API" if renews else KEY_OF.get(listener.name, "API")


@pytest.mark.parametrize("text", ["ts_open_inference_protocol=true\n", "service_envelope=kservev2\n"])
def test_each_route_with_no_key_the_other_ports_and_a_wrong_one(folder: TorchServeFolder, text: str) -> None:
    folder.model("one", ECHO)
    with torchserve(folder, "--models", "one", "--enable-model-api", text=text) as server:
        count = 0
        for listener in listeners(Transport.HTTP):
            port = server.port(APIS[listener.name])
            for method, path in rows(listener):
                where = f"{listener.name}: {method} {path}"
                right = folder.key(needed(listener, path))
                wrong = {"", "wrong", right[:-1], right + "x", right.swapcase()}
                wrong |= {folder.key(each) for each in ("inference", "management", "API")} - {right}
                needs_none = listener.role is Role.METRICS or (method, path) in OPEN_PATHS
                needs_none = needs_none or (method == "OPTIONS" and path.startswith("/api-description"))
                for key in wrong:
                    assert is_refused(ask(port, asked(method, path, key))) is not needs_none, (where, key)
                    count += 1
                if method != "DELETE":
                    assert not is_refused(ask(port, asked(method, path, right))), where
        assert count > 300
        if "envelope" not in text:
            server.serves("one", bearer(folder.key("inference")))


def status(port: int, method: str, key: str, kind: str) -> grpc.StatusCode:
    """How a call ends that sends one empty message."""
    metadata = [("authorization", f"Bearer {key}")] if key else []
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            if kind == "STREAM":
                list(channel.stream_stream(method)(iter([b""]), metadata=metadata, timeout=SECONDS))
            elif kind == "SERVER_STREAM":
                list(channel.unary_stream(method)(b"", metadata=metadata, timeout=SECONDS))
            else:
                channel.unary_unary(method)(b"", metadata=metadata, timeout=SECONDS)
        except grpc.RpcError as error:
            return error.code()  # type: ignore[no-any-return]
    return grpc.StatusCode.OK


def rpcs(listener: Listener) -> dict[str, str]:
    """Every RPC of a listener's services, with its kind."""
    found = {}
    for route in listener.routes:
        methods = [
            method
            for method in CATALOGUE.rpc[route.protocol].SCOPES
            if method.startswith(f"/{route.prefix}/")
        ]
        if not methods:  # the same RPCs under another name
            methods = [
                f"/{route.prefix}/{method.rpartition('/')[2]}"
                for method in CATALOGUE.rpc[route.protocol].SCOPES
            ]
        assert methods, route
        found.update(dict.fromkeys(methods, ""))
    kinds = {
        "StreamPredictions": "SERVER_STREAM",
        "StreamPredictions2": "STREAM",
        "ModelStreamInfer": "STREAM",
    }
    return {method: kinds.get(method.rpartition("/")[2], "UNARY") for method in found}


def test_each_rpc_with_no_key_the_other_ports_and_a_wrong_one(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    text = "ts_open_inference_protocol=true\n"
    denied = grpc.StatusCode.PERMISSION_DENIED
    with torchserve(folder, "--models", "one", "--enable-model-api", text=text) as server:
        count = 0
        for listener in listeners(Transport.GRPC):
            port = server.port(APIS[listener.name])
            right = folder.key(KEY_OF[listener.name])
            for method, kind in rpcs(listener).items():
                for key in (
                    "",
                    "wrong",
                    right[:-1],
                    folder.key(OTHERS[KEY_OF[listener.name]]),
                    folder.key("API"),
                ):
                    assert status(port, method, key, kind) is denied, (method, key)
                    count += 1
                assert status(port, method, right, kind) is not denied, method
            for method in (
                "/no.Service/Any",
                "/",
                "/org.pytorch.serve.grpc.inference.InferenceAPIsService/New",
            ):
                assert status(port, method, "", "UNARY") in (denied, grpc.StatusCode.UNIMPLEMENTED)
        assert count > 50


def test_at_an_address_for_both_models_are_managed_by_their_own_key_alone(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    folder.model("token", ECHO)
    (port, rpc_port) = (free_port(), free_port())
    text = f"inference_address=http://127.0.0.1:{port}\nmanagement_address=http://127.0.0.1:{port}\n"
    text += f"grpc_inference_port={rpc_port}\ngrpc_management_port={rpc_port}\n"
    with torchserve(folder, "--models", "one", "token", "--enable-model-api", text=text):
        infer, manage = bearer(folder.key("inference")).encode(), bearer(folder.key("management")).encode()

        def predicted() -> int:
            return ask(port, post("/predictions/one", b"x", infer + b"Content-Type: text/plain\r\n")).status

        until(lambda: predicted() == 200, lambda: str(predicted()))
        for method, path in rows_of(MANAGEMENT):
            if path.startswith("/v1"):
                continue  # a model's description there is for who infers
            assert is_refused(ask(port, asked(method, path, folder.key("inference")))), (method, path)
            assert is_refused(ask(port, asked(method, path, ""))), (method, path)
        assert ask(port, get("/models", manage)).status == 200
        assert is_refused(ask(port, post("/predictions/one", b"x", manage)))
        assert is_refused(ask(port, get("/token?type=inference", infer)))
        assert ask(port, get("/token?type=inference", bearer(folder.key("API")).encode())).status == 200
        assert predicted_with(port, folder.key("inference")) == 200
        until(lambda: predicted_with(port, folder.key("inference"), "/token/predict") == 200, lambda: "")
        for each in ("management", "API"):
            assert predicted_with(port, folder.key(each), "/token/predict") == 400
        for method, kind in rpcs(listeners(Transport.GRPC)[0]).items():
            if "openinference" in method or method.startswith("/inference."):
                continue  # switched off
            purpose = "management" if ".management." in method else "inference"
            refused = status(rpc_port, method, folder.key(OTHERS[purpose]), kind)
            assert refused is grpc.StatusCode.PERMISSION_DENIED, method
            passed = status(rpc_port, method, folder.key(purpose), kind)
            assert passed is not grpc.StatusCode.PERMISSION_DENIED, method


def rows_of(table: object) -> list[tuple[str, str]]:
    assert isinstance(table, tuple)
    return [(row.method, re.sub(r"{(\w+)}", r"\1", row.path)) for row in table]


def predicted_with(port: int, key: str, path: str = "/predictions/one") -> int:
    fields = bearer(key).encode() + b"Content-Type: text/plain\r\n"
    return ask(port, post(path, b"x", fields)).status


# -- keys that are none ------------------------------------------------------------------------------------


def test_keys_that_are_none_open_nothing_and_stop_nothing(folder: TorchServeFolder) -> None:
    folder.model("one", PRINTS)
    with torchserve(folder, "--models", "one", text="") as server:
        key = folder.key("inference")
        port = server.port("Inference")
        server.serves("one", bearer(key))
        fields = [
            f"Authorization: {key}",
            f"Authorization: Bearer{key}",
            f"Authorization: Basic {key}",
            f"Authorization: Bearer {key} {key}",
            f"Authorization: Bearer x{key}",
            f"Authorization: Bearer {key}\0",
            f"Authorization: Bearer \x7f{key}",
            f"Authorization: Bearer {key}\x01",
            f"Authorization: Bearer\x0b{key}x",
            "Authorization: Bearer \xe9\xff",
            "Authorization: Bearer ",
            "Authorization:",
            "Authorization: Bearer null\r\nX-Authorization: Bearer " + key,
            f"Proxy-Authorization: Bearer {key}",
            f"Cookie: {key}",
            f"Authorization: Bearer wrong\r\nAuthorization: Bearer {key}x",
            f"X-Any: a\r\n Authorization: Bearer {key}x",
        ]
        for each in fields:
            answer = ask(port, get("/predictions/one", f"{each}\r\n".encode("latin-1")))
            assert answer.status == 400, (each, answer)
        for path in (
            "//predictions/one",
            "/./predictions/one",
            "/x/../predictions/one",
            "/api-description/../ping",
        ):
            assert ask(port, get(path)).status in (400, 404), path
        large = ask(port, get("/predictions/one", f"Authorization: Bearer {'x' * 2**20}\r\n".encode()))
        assert large.status in (400, 431)
        with grpc.insecure_channel(f"127.0.0.1:{server.port('gRPC inference')}") as channel:
            call = channel.unary_unary("/org.pytorch.serve.grpc.inference.InferenceAPIsService/Ping")
            for shown in ("x" * 2**20, f"{key} {key}", f"{key},", "~" * 3000):
                with pytest.raises(grpc.RpcError) as caught:
                    call(b"", metadata=[("authorization", f"Bearer {shown}")], timeout=SECONDS)
                expected = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.RESOURCE_EXHAUSTED)
                assert caught.value.code() in (*expected, grpc.StatusCode.UNAVAILABLE), shown[:20]
            call(b"", metadata=[("authorization", f"Bearer {key}")], timeout=SECONDS)
        assert server.predict("one", b"hi", bearer(key)).body == b"hi"
        show_keys_where_none_belong(server, folder)
    keys = [folder.key(each) for each in ("inference", "management", "API")]
    assert_no_key_in_logs(folder, server, keys)
    text = (folder.path / "logs" / "access_log.log").read_text()
    assert text.count("(a key)") >= 3 * (2 * 10 + 1)
    assert "bytearray(b'(a key)')" in (folder.path / "logs" / "model_log.log").read_text()


def show_keys_where_none_belong(server: TorchServeProcess, folder: TorchServeFolder) -> None:
    """In queries and paths of requests that are let in and that are not, with every key."""
    inference, management = bearer(folder.key("inference")), bearer(folder.key("management"))
    for each in ("inference", "management", "API"):
        key = folder.key(each)
        encoded = "".join(f"%{ord(sign):02X}" for sign in key)
        for shown in (key, encoded):
            for api, path, right in (
                ("Inference", f"/predictions/one?token={shown}", inference),
                ("Inference", f"/one/predict?token={shown}", inference),  # which the handler sees
                ("Management", f"/models/{shown}?key={shown}", management),
                ("Management", f"/models?url={shown}.mar&model_name={shown}", management),
            ):
                assert server.ask(api, "GET", path).status == 400
                assert server.ask(api, "GET", path, fields=right).status in (200, 404)
        with grpc.insecure_channel(f"127.0.0.1:{server.port('gRPC inference')}") as channel:
            with pytest.raises(grpc.RpcError):
                channel.unary_unary(f"/any.Service/{key}")(b"", timeout=SECONDS)


def assert_no_key_in_logs(folder: TorchServeFolder, server: TorchServeProcess, keys: list[str]) -> None:
    texts = {path: path.read_text() for path in (folder.path / "logs").rglob("*") if path.is_file()}
    assert {"ts_log.log", "access_log.log"} <= {path.name for path in texts}
    for path, text in {**texts, folder.path / "console": server.said()}.items():
        for key in keys:
            assert key not in text, path


def until_received(stream: socket.socket, end: bytes) -> None:
    """Read until the last bytes are these."""
    found = b""
    while not found.endswith(end):
        part = stream.recv(65536)
        assert part, found
        found += part


def test_a_key_that_ends_while_a_stream_runs_lets_that_finish_and_no_other_begin(
    folder: TorchServeFolder,
) -> None:
    gate = folder.path / "gate"
    folder.model(
        "streams",
        "import os, time\nfrom ts.handler_utils.utils import send_intermediate_predict_response as send\n"
        "def handle(data, context):\n    if not data:\n        return None\n"
        "    send(['a'], context.request_ids, 'ok', 200, context)\n"
        f"    while not os.path.exists({str(gate)!r}):\n        time.sleep(0.005)\n    return ['b']\n",
        "minWorkers: 2\nmaxWorkers: 2\n",
    )
    with torchserve(folder, "--models", "streams", text="token_expiration_min=0.2\n") as server:
        key = folder.key("inference")
        until(lambda: "Model streams loaded" in server.said(), server.said)
        api = folder.key("API")
        # A key of this moment: the first one may have ended while the model loaded.
        assert (
            ask(server.port("Management"), get("/token?type=inference", bearer(api).encode())).status == 200
        )
        assert folder.key("inference") != key
        key = folder.key("inference")
        address = f"127.0.0.1:{server.port('gRPC inference')}"
        with connect(server.port("Inference")) as stream, grpc.insecure_channel(address) as channel:
            stream.sendall(get("/predictions/streams", bearer(key).encode()))
            until_received(stream, b"\r\na\r\n")
            rpc, right = channel.unary_stream(STREAM), [("authorization", f"Bearer {key}")]
            parts = rpc(b"\x0a\x07streams", metadata=right, timeout=SECONDS)
            assert b"a" in next(parts)
            until(
                lambda: is_refused(ask(server.port("Inference"), get("/ping", bearer(key).encode()))),
                server.said,
            )
            with pytest.raises(grpc.RpcError) as caught:
                next(rpc(b"\x0a\x07streams", metadata=right, timeout=SECONDS))
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            gate.touch()
            until_received(stream, b"\r\nb\r\n0\r\n\r\n")
            assert b"b" in next(parts)
            assert list(parts) == []
        assert (
            ask(server.port("Management"), get("/token?type=inference", bearer(api).encode())).status == 200
        )
        assert (
            ask(server.port("Inference"), get("/ping", bearer(folder.key("inference")).encode())).status
            == 200
        )
    assert_no_key_in_logs(folder, server, [key, folder.key("inference"), api])


# -- YAML that would make objects --------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system ['touch MARK']", "!!javax.script.X [MARK]"])
def test_yaml_of_the_metrics_makes_no_objects(folder: TorchServeFolder, tag: str) -> None:
    mark = folder.path / "made"
    metrics = folder.path / "metrics.yaml"
    metrics.write_text(f"dimensions:\n  - {tag.replace('MARK', str(mark))}\nmodel_metrics:\n  counter: []\n")
    words = ("--start", "--foreground", "--model-store", folder.store, "--ts-config")
    found, text = said(folder, *words, folder.configured(f"metrics_config={metrics}\n"))
    assert (found, mark.exists()) == (1, False), text
    assert "metrics_config" in text
    assert "Traceback" not in text
