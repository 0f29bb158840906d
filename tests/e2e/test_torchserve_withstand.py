"""A TorchServe whose surroundings are hostile: requests that would forge its logs, disks without room, addresses
that others reach, a signal while everything is in work.
"""

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from tests.harness.h2_peer import Peer
from tests.harness.raw_http import ask, connect, get, post
from tests.harness.server_process import SECONDS, until
from tests.harness.torchserve_command import (
    READY,
    TORCHSERVE,
    TorchServeFolder,
    TorchServeProcess,
    torchserve,
)
from tests.harness.web import dripping, web

ECHO = "def handle(data, context):\n    return data and [str(row.get('body')) for row in data]\n"
FORGED = "2026-01-01T00:00:00,000 [ERROR] main org.forged - everything is lost"


@pytest.fixture
def folder(tmp_path: Path) -> TorchServeFolder:
    return TorchServeFolder(tmp_path)


# -- logs --------------------------------------------------------------------------------------------------


def test_no_request_writes_lines_of_its_own_into_a_log(folder: TorchServeFolder) -> None:
    folder.model("one", ECHO)
    escaped = FORGED.replace(" ", "%20")
    with torchserve(folder, "--models", "one", "--enable-model-api") as server:
        server.serves("one")
        inference, management = server.port("Inference"), server.port("Management")
        for end in ("%0a", "%0d", "%0d%0a", "%0b", "%0c", "%1b[2J", "%c2%85", "%e2%80%a8", "%00", "%250a"):
            for port in (inference, management):
                for path in ("/predictions/{}", "/models/{}", "/predictions/one/{}", "/{}", "/models?url={}"):
                    for method in (b"GET", b"POST", b"DELETE"):
                        ask(port, get(path.format(f"x{end}{escaped}"), b"Content-Length: 0\r\n", method))
        for end in ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1b[2J\n", "\x85", "\u2028", "\0\n"):
            text = f"x{end}{FORGED}"
            for name in ("url", "model_name", "handler", "runtime"):
                asked = {"url": "one", name: text}
                ask(
                    management,
                    post("/models", json.dumps(asked).encode(), b"Content-Type: application/json\r\n"),
                )
            raw = f"/predictions/x{end}{FORGED.replace(' ', '_')}".encode()
            with connect(inference) as sent:
                sent.sendall(b"GET " + raw + b" HTTP/1.1\r\nHost: h\r\n\r\n")
                with contextlib.suppress(ConnectionError):
                    sent.recv(4096)
            with connect(server.port("gRPC inference")) as sent:
                peer = Peer()
                path = f"/org.pytorch.serve.grpc.inference.InferenceAPIsService/x{end}{FORGED}"
                sent.sendall(peer.greeting() + peer.call(1, path, b"", more=(("user-agent", text),)))
                with contextlib.suppress(ConnectionError):
                    sent.recv(4096)
            with grpc.insecure_channel(f"127.0.0.1:{server.port('gRPC inference')}") as channel:
                call = channel.unary_unary(
                    "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions"
                )
                name = text.encode()
                with contextlib.suppress(grpc.RpcError):
                    call(b"\x0a" + bytes([len(name)]) + name, timeout=SECONDS)
        assert server.predict("one", b"hi").body == b"hi"
    logs = [path for path in (folder.path / "logs").iterdir() if path.is_file()]
    texts = {path: path.read_text(errors="surrogateescape") for path in (*logs, server.log)}
    assert any("forged" in text for text in texts.values())  # what was asked is told
    for path, text in texts.items():
        for line in re.split(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text):
            assert not line.startswith(
                ("2026-01-01T00:00:00,000", "2026-01-01T00:00:00,000".replace(" ", "_"))
            ), path
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", text), path


# -- who is reached by others ------------------------------------------------------------------------------

WIDE = {
    "inference": "inference_address=http://0.0.0.0:0\n",
    "inference of IPv6": "inference_address=http://[::]:0\n",
    "management": "management_address=http://0.0.0.0:0\n",
    "gRPC inference": "grpc_inference_address=0.0.0.0\n",
    "gRPC management": "grpc_management_address=0.0.0.0\n",
}


@pytest.mark.parametrize("name", WIDE)
def test_each_listener_that_others_reach_without_keys_is_told_loudly(
    folder: TorchServeFolder, name: str
) -> None:
    for words, text in ((("--dt",), ""), ((), "disable_token_authorization=true\n")):
        with torchserve(folder, *words, "--enable-model-api", text=WIDE[name] + text) as server:
            found = re.findall(r"\[ERROR\].*The token check is off.*", server.said())
            assert len(found) == 1, server.said()
            assert "run any code on this machine" in found[0]
            assert ("--disable-token-auth" if words else "disable_token_authorization") in found[0]


# -- a disk without room -----------------------------------------------------------------------------------


def on_a_small_disk(folder: Path, *command: str | Path) -> list[str]:
    """A command whose current folder is a disk of its own with 64 KiB, of which all but one page is taken."""
    script = (
        'mount -t tmpfs -o size=64k none "$0" && cd "$0" && '
        'head -c 61440 /dev/zero > taken && mkdir logs && exec "$@"'
    )
    return ["unshare", "-m", "sh", "-c", script, str(folder), *map(str, command)]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    place = tmp_path / "disk"
    place.mkdir()
    probe = subprocess.run(on_a_small_disk(place, "true"), capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("this user may not mount a disk")
    return place


@contextlib.contextmanager
def served_there(folder: TorchServeFolder, disk: Path, *words: str | Path) -> Iterator[TorchServeProcess]:
    log = folder.path / "log"
    line = on_a_small_disk(disk, *TORCHSERVE, "--start", "--foreground", "--model-store", folder.store)
    variables = {**folder.variables({}), "LOG_LOCATION": str(folder.path / "logs")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*line, *map(str, words)], stdout=output, stderr=subprocess.STDOUT, env=variables, cwd=folder.path
        )
    try:
        yield TorchServeProcess(process, log)
    finally:
        process.kill()
        process.wait()


def test_keys_that_there_is_no_room_for_end_the_start_with_the_way_out(
    folder: TorchServeFolder, disk: Path
) -> None:
    file = folder.configured()
    script = on_a_small_disk(disk)[4].replace("61440", "65536")
    line = ["unshare", "-m", "sh", "-c", script.replace("mkdir logs && ", ""), str(disk), *TORCHSERVE]
    words = ["--start", "--foreground", "--ncs", "--ts-config", file, "--model-store", folder.store]
    done = subprocess.run(
        [*line, *map(str, words)],
        env={**folder.variables({}), "LOG_LOCATION": str(folder.path / "logs")},
        cwd=folder.path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 1, text
    assert "The keys cannot be written to" in text
    assert "No space left on device" in text
    assert "--disable-token-auth" in text
    assert "Traceback" not in text
    assert not folder.pid_file.exists()


def test_a_key_that_cannot_be_renewed_stays_the_key(folder: TorchServeFolder, disk: Path) -> None:
    folder.model("one", ECHO)
    with served_there(folder, disk, "--ncs", "--ts-config", folder.configured(), "--models", "one") as server:
        server.await_line(READY)
        place = Path(f"/proc/{server.process.pid}/cwd")
        keys = json.loads((place / "key_file.json").read_text())
        rights = {name: bearer(row["key"]) for name, row in keys.items()}
        server.serves("one", rights["inference"])
        # Of two pages one was free, and the keys have it.
        answer = server.ask("Management", "GET", "/token?type=inference", fields=rights["API"])
        assert answer.status >= 400, answer
        assert "No space left on device" in answer.document["message"]
        told = "The key of inference stays as it was: The keys cannot be written to"
        until(lambda: told in server.said(), server.said)
        assert server.predict("one", b"hi", rights["inference"]).body == b"hi"
        assert json.loads((place / "key_file.json").read_text()) == keys
        assert sorted(path.name for path in place.iterdir()) == ["key_file.json", "logs", "taken"]
        (place / "taken").unlink()
        assert server.ask("Management", "GET", "/token?type=inference", fields=rights["API"]).status == 200
        assert server.predict("one", b"hi", rights["inference"]).status == 400
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


def test_snapshots_that_there_is_no_room_for_stop_nothing_and_are_never_cut_short(
    folder: TorchServeFolder,
) -> None:
    folder.model("one", ECHO)
    place = folder.path / "logs" / "config"
    place.mkdir(parents=True)
    script = 'mount -t tmpfs -o size=4k none "$0" && head -c 4096 /dev/zero > "$0/taken" && exec "$@"'
    line = ["unshare", "-m", "sh", "-c", script, str(place)]
    if subprocess.run([*line, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk")
    configuration = folder.configured("disable_token_authorization=true\nenable_model_api=true\n")
    shutil.copy(configuration, folder.path / "config.properties")
    log = folder.path / "log"
    words = [
        *line,
        *TORCHSERVE,
        "--start",
        "--foreground",
        "--model-store",
        str(folder.store),
        "--models",
        "one",
    ]
    with log.open("wb") as output:
        env = folder.variables({})
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=folder.path)
    try:
        server = TorchServeProcess(process, log)
        server.await_line(READY)
        server.serves("one")
        until(lambda: "The snapshot logs/config/" in server.said(), server.said)
        assert "No space left on device" in server.said()
        assert server.ask("Management", "PUT", "/models/one?min_worker=2&synchronous=true").status == 200
        inside = Path(f"/proc/{process.pid}/root{place}")
        assert [path.name for path in inside.iterdir()] == ["taken"]
        assert server.predict("one", b"hi").body == b"hi"
        process.terminate()
        assert server.wait() == 0
        assert "Traceback" not in server.said()
    finally:
        process.kill()
        process.wait()


# -- a signal while everything is in work ------------------------------------------------------------------

STREAMS = (
    "import os, time\nfrom ts.handler_utils.utils import send_intermediate_predict_response as send\n"
    "def handle(data, context):\n    if not data:\n        return None\n"
    "    send(['a'], context.request_ids, 'ok', 200, context)\n"
    "    while not os.path.exists(GATE):\n        time.sleep(0.005)\n    return ['b']\n"
)


def test_a_signal_finishes_streams_and_gives_up_registrations_downloads_and_renewals(
    folder: TorchServeFolder,
) -> None:
    gate = folder.path / "gate"
    folder.model("streams", STREAMS.replace("GATE", repr(str(gate))))
    folder.model("hangs", "import time\nprint('I begin', flush=True)\ntime.sleep(600)\n")
    stop = threading.Event()
    with web({"/drips.mar": dripping(stop)}) as site, ThreadPoolExecutor(4) as threads:
        text = f"enable_model_api=true\nallowed_urls={site.url.replace('.', '[.]')}/.*\n"
        text += f"trivium_fetch_from={site.url}\n"
        variables = {"TRIVIUM_DRAIN_TIMEOUT": "2"}
        with torchserve(folder, "--models", "streams", text=text, variables=variables) as server:
            until(lambda: "Model streams loaded" in server.said(), server.said)
            first = folder.key("inference")
            with connect(server.port("Inference")) as stream:
                stream.sendall(get("/predictions/streams", bearer(first).encode()))
                received(stream, b"\r\na\r\n")
                right = bearer(folder.key("management"))
                urls = (f"{site.url}/drips.mar", "hangs")
                asked = [threads.submit(_registered, server, url, right) for url in urls]
                renewed = threads.submit(_renewals, server, bearer(folder.key("API")))
                until(lambda: "/drips.mar" in site.asked and "I begin" in server.said(), server.said)
                until(lambda: folder.key("inference") != first, server.said)
                family = server.process.children(recursive=True)
                server.signal(signal.SIGTERM)
                until(lambda: _refuses(server.port("Inference")), server.said)
                gate.touch()
                received(stream, b"\r\nb\r\n0\r\n\r\n")
                assert server.wait() == 0
            for each in asked:
                assert each.result(SECONDS) == 503, server.said()
            assert renewed.result(SECONDS) <= {200, 503}
            until(lambda: not any(each.is_running() for each in family), server.said)
            assert server.said().splitlines()[-1].endswith("Torchserve stopped.")
        stop.set()
    assert json.loads((folder.path / "key_file.json").read_text()).keys() == {
        "inference",
        "management",
        "API",
    }
    left = {path.name for path in folder.path.iterdir()}
    assert left == {"gate", "given.properties", "key_file.json", "log", "logs", "store"}


def bearer(key: str) -> str:
    return f"Authorization: Bearer {key}\r\n"


def _renewals(server: TorchServeProcess, right: str) -> set[int]:
    """Renew the key of inference until nobody answers any more; returns the statuses."""
    found = set()
    with contextlib.suppress(OSError, AssertionError):
        while True:
            found.add(server.ask("Management", "GET", "/token?type=inference", fields=right).status)
    return found


def _registered(server: TorchServeProcess, url: str, right: str) -> int | None:
    """The status of a registration; None where the connection ended without an answer."""
    path = f"/models?url={url}&model_name=late&initial_workers=1"
    try:
        return server.ask("Management", "POST", path, fields=right).status
    except (OSError, AssertionError, ValueError, IndexError):
        return None


def _refuses(port: int) -> bool:
    try:
        with connect(port) as sent:
            sent.sendall(get("/ping"))
            return not sent.recv(1)
    except OSError:
        return True


def received(stream: socket.socket, end: bytes) -> bytes:
    """Read until the last bytes are these."""
    found = b""
    while not found.endswith(end):
        part = stream.recv(65536)
        assert part, found
        found += part
    return found
