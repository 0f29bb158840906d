"""A tiny language model under the real server: its steps, slow readers, clients that leave, bad requests, kills."""

import json
import os
import random
import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.harness.language_models import text, write
from tests.harness.server_process import ServerProcess, serve, serve_handlers, until

SLOTS, CHUNK = 4, 32
NARROW = 256 * 512
"""Bytes of the keys and values of 256 tokens."""
STEP = re.compile(
    r"step of model 'tiny': rows (\d+), prompt tokens (\d+), new tokens (\d+), wasted tokens (\d+), share ([\d.]+), "
    r"began ([\d.]+), ended ([\d.]+)"
)
PROCESSOR = """
import torch

class Raising:
    def __call__(self, input_ids, scores):
        raise ValueError("as told")

def make(**arguments):
    return Raising()
"""


class Step(NamedTuple):
    rows: int
    prompt_tokens: int
    new_tokens: int
    wasted_tokens: int
    began: float
    ended: float


def steps(server: ServerProcess) -> list[Step]:
    return [
        Step(*(int(count) for count in found[:4]), float(found[5]), float(found[6]))
        for found in STEP.findall(server.said())
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("store")
    write(root / "tiny", "llama")
    (root / "tiny" / "raising.py").write_text(PROCESSOR)
    log = tmp_path_factory.mktemp("log") / "log"
    settings = f"hf.slots={SLOTS},hf.prefill_chunk={CHUNK},hf.threads=1,hf.max_context=512"
    with serve_handlers(log, root, "--log-level", "debug", "--engine-parameters", settings) as serving:
        until(serving.is_ready, serving.said)
        yield serving


def ask(server: ServerProcess, **body: Any) -> tuple[int, Any]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=120)) as client:
        told = {"model": "tiny", "max_tokens": 8, "temperature": 0, **body}
        client.request("POST", "/v1/completions", json.dumps(told))
        response = client.getresponse()
        return response.status, json.loads(response.read())


def said(answer: tuple[int, Any]) -> str:
    status, body = answer
    assert status == 200, body
    return str(body["choices"][0]["text"])


def generation(server: ServerProcess) -> dict[str, Any]:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as client:
        client.request("GET", "/v2/models/tiny/stats")
        (stats,) = json.loads(client.getresponse().read())["model_stats"]
        return dict(stats["generation_stats"])


def stream(server: ServerProcess, **body: Any) -> tuple[socket.socket, Any]:
    """A request whose answer nobody has begun to read."""
    told = json.dumps({"model": "tiny", "temperature": 0, "stream": True, "ignore_eos": True, **body})
    plug = socket.create_connection(("127.0.0.1", server.port), 120)
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    head = f"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {len(told)}\r\n\r\n"
    plug.sendall((head + told).encode())
    return plug, plug.makefile("rb")


def events(reader: Any) -> list[Any]:
    """What is left of an answer; its connection stays open for longer behind one that failed."""
    found = []
    for line in reader:
        if line == b"0\r\n":  # the last chunk
            return found
        if line.startswith(b"data: "):
            if line.startswith(b"data: [DONE]"):
                return found
            found.append(json.loads(line[6:]))
    return found


def test_long_prompts_among_running_requests_stop_nobody(server: ServerProcess) -> None:
    before, had = len(steps(server)), generation(server)
    chance = random.Random(1)
    wanted = [(text(number, chance.choice([20, 200, 900])), chance.randint(4, 40)) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda one: ask(server, prompt=one[0], max_tokens=one[1], ignore_eos=True), wanted)
        )
    usages = [body["usage"] for _, body in answers]
    assert [usage["completion_tokens"] for usage in usages] == [count for _, count in wanted]
    until(lambda: not generation(server)["running"], server.said)
    made = steps(server)[before:]
    for step in made:
        assert step.rows + step.prompt_tokens <= SLOTS + CHUNK
        assert step.new_tokens >= step.rows
    counted = generation(server)
    tokens = sum(usage["completion_tokens"] for usage in usages)
    assert (
        counted["generated_tokens"] - had["generated_tokens"]
        == tokens
        == sum(step.new_tokens for step in made)
    )
    prompts = sum(usage["prompt_tokens"] for usage in usages)
    assert (
        counted["prompt_tokens"] - had["prompt_tokens"] == prompts == sum(step.prompt_tokens for step in made)
    )
    assert counted["wasted_tokens"] == had["wasted_tokens"]


def test_everybody_is_answered_as_when_alone(server: ServerProcess) -> None:
    prompts = [text(number, 30 + number * 3) for number in range(24)]
    alone = [said(ask(server, prompt=prompt, max_tokens=12)) for prompt in prompts]
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda prompt: said(ask(server, prompt=prompt, max_tokens=12)), prompts))
    assert together == alone


def test_a_client_that_leaves_is_in_no_further_step(server: ServerProcess) -> None:
    until(lambda: not generation(server)["running"], server.said)
    wasted = generation(server)["wasted_tokens"]
    plug, reader = stream(server, prompt="leave", max_tokens=480)
    while not reader.readline().startswith(b"data: "):
        pass
    plug.close()
    reader.close()
    until(lambda: generation(server)["wasted_tokens"] > wasted, server.said)
    until(lambda: not generation(server)["running"], server.said)
    wasted = generation(server)["wasted_tokens"]
    until(
        lambda: sum(step.wasted_tokens for step in steps(server)) == wasted, server.said
    )  # the log is read late
    after = len(steps(server))
    assert said(ask(server, prompt="next"))
    assert sum(step.wasted_tokens for step in steps(server)[after:]) == 0


def test_a_client_that_reads_nothing_delays_nobody_and_gets_everything(server: ServerProcess) -> None:
    plug, reader = stream(server, prompt="slow", max_tokens=400, logprobs=5)
    with closing(plug):
        until(lambda: generation(server)["running"] == 1, server.said)
        fast = [said(ask(server, prompt=text(number, 40), max_tokens=30)) for number in range(5)]
        until(lambda: not generation(server)["running"], server.said)  # it has been computed to its end
        late = events(reader)
    texts = "".join(choice["text"] for event in late for choice in event["choices"])
    tokens = [
        token for event in late for choice in event["choices"] for token in choice["logprobs"]["tokens"]
    ]
    whole = ask(server, prompt="slow", max_tokens=400, ignore_eos=True)
    assert texts == said(whole)
    assert len(tokens) == 400
    assert all(fast)


def test_random_requests_good_and_bad_leave_nothing_behind(server: ServerProcess) -> None:
    chance = random.Random(5)
    good = [(text(number, chance.randint(5, 300)), chance.randint(1, 30)) for number in range(40)]
    alone = [said(ask(server, prompt=prompt, max_tokens=count)) for prompt, count in good]

    def one(number: int) -> None:
        prompt, count = good[number % len(good)]
        what = number % 5
        if what == 1:
            status, body = ask(server, prompt=prompt, temperature=-1)
            assert (status, "temperature" in body["error"]["message"]) == (400, True)
        elif what == 2:
            plug, reader = stream(server, prompt=prompt, max_tokens=200)
            reader.readline()
            plug.close()
            reader.close()
        elif what == 3:
            status, body = ask(server, prompt=prompt * 400)
            assert (status, "context" in body["error"]["message"]) == (400, True), body
        else:
            assert said(ask(server, prompt=prompt, max_tokens=count)) == alone[number % len(good)]

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(one, range(500)))
    until(lambda: not generation(server)["running"], server.said)
    assert said(ask(server, prompt=good[0][0], max_tokens=good[0][1])) == alone[0]


def worker(server: ServerProcess) -> int:
    (process,) = server.workers()
    return process.pid


def test_a_killed_worker_fails_what_had_begun_and_its_successor_answers_the_rest(
    server: ServerProcess,
) -> None:
    running = [stream(server, prompt=text(number, 20), max_tokens=450) for number in range(SLOTS)]
    for _, reader in running:
        while not reader.readline().startswith(b"data: "):
            pass
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(ask, server, prompt=text(number, 30)) for number in range(3)]
        until(lambda: generation(server)["waiting"] == 3, server.said)
        os.kill(worker(server), signal.SIGKILL)
        for plug, reader in running:
            *_, last = events(reader)
            assert "died" in json.dumps(last)
            plug.close()
            reader.close()
        assert all(said(answer.result()) for answer in waiting)


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[ServerProcess]:
    """The model with memory for 256 tokens, and slots for far more."""
    write(tmp_path / "store" / "tiny", "llama")
    settings = f"hf.slots=8,hf.prefill_chunk={CHUNK},hf.threads=1,hf.kv_bytes={NARROW}"
    with serve(tmp_path / "log", tmp_path / "store", "--engine-parameters", settings) as serving:
        until(serving.is_ready, serving.said)
        yield serving


def gauge(server: ServerProcess, name: str) -> float:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as client:
        client.request("GET", "/metrics")
        text = client.getresponse().read().decode()
    (found,) = re.findall(rf"^{name}{{.*}} (.*)$", text, re.MULTILINE)
    return float(found)


def test_where_memory_is_for_few_all_are_answered_and_a_stop_loses_nobody(narrow: ServerProcess) -> None:
    assert re.search(
        r"tiny version 1: memory at most .* \(256 tokens, 512 bytes for each token\)", narrow.said()
    )
    prompts = [text(number, 30 + number * 7) for number in range(10)]
    wanted = {"max_tokens": 100, "ignore_eos": True, "temperature": 0.8, "seed": 3}
    alone = [said(ask(narrow, prompt=prompt, **wanted)) for prompt in prompts]
    assert not generation(narrow)["wasted_tokens"]
    status, body = ask(narrow, prompt="a", max_tokens=300)
    assert status == 400
    assert "'max_tokens' is 300" in body["error"]["message"]
    assert f"the model has {NARROW} for them" in body["error"]["message"]
    with ThreadPoolExecutor(10) as pool:
        together = [pool.submit(ask, narrow, prompt=prompt, **wanted) for prompt in prompts]
        leaving = [stream(narrow, prompt=text(number, 90), max_tokens=150) for number in range(4)]
        until(lambda: generation(narrow)["wasted_tokens"] > 0, narrow.said)
        for plug, reader in leaving:
            plug.close()
            reader.close()
        assert [said(answer.result()) for answer in together] == alone
    until(lambda: not generation(narrow)["running"], narrow.said)
    until(lambda: not gauge(narrow, "trivium_generation_cache_used_bytes"), narrow.said)
    assert gauge(narrow, "trivium_generation_cache_bytes") == NARROW
    wasted = generation(narrow)["wasted_tokens"]
    running = [stream(narrow, prompt=text(number, 60), max_tokens=180) for number in range(4)]
    until(lambda: generation(narrow)["wasted_tokens"] > wasted, narrow.said)
    narrow.signal(signal.SIGTERM)
    for plug, reader in running:
        *_, last = events(reader)
        assert last["choices"][0]["finish_reason"] == "length", "what is computed again is answered as well"
        plug.close()
        reader.close()
    assert narrow.wait() == 0
