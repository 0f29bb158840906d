"""Texts that are too much for a language model under the real server: neighbours are answered, and the work stops."""

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.harness.language_models import write
from tests.harness.raw_http import connect, reset
from tests.harness.server_process import ServerProcess, serve_handlers, until

SLOTS = 4
ENDLESS = "{% for i in range(99999) %}" * 4 + "{% endfor %}" * 4
CHAT = [{"role": "user", "content": "hi"}]
LONG = "word and " * (7 * 2**20 // 9)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("store")
    write(root / "tiny", "llama")
    write(root / "endless", "llama")
    (root / "endless" / "chat_template.jinja").write_text(ENDLESS)
    settings = f"hf.slots={SLOTS},hf.threads=1,hf.max_context=512"
    with serve_handlers(
        tmp_path_factory.mktemp("log") / "log", root, "--engine-parameters", settings
    ) as serving:
        until(serving.is_ready, serving.said)
        yield serving


def ask(server: ServerProcess, path: str = "completions", **body: Any) -> tuple[int, str]:
    told = {"model": "tiny", "max_tokens": 4, "temperature": 0, **body}
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=120)) as client:
        client.request("POST", f"/v1/{path}", json.dumps(told))
        response = client.getresponse()
        return response.status, response.read().decode()


def children(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    found = []
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            found += one.children()
    return found


def readers(server: ServerProcess) -> dict[int, psutil.Process]:
    """The processes beside workers that read texts: children of a process which is a child of a worker."""
    return {one.pid: one for one in children(children(server.workers()))}


def is_busy(process: psutil.Process) -> bool:
    """Has it computed for half a second?"""
    with suppress(psutil.NoSuchProcess):
        return bool(process.cpu_times().user > 0.5)
    return False


def test_prompts_of_megabytes_are_refused_while_others_are_answered(server: ServerProcess) -> None:
    with ThreadPoolExecutor(6) as pool:
        large = [pool.submit(ask, server, prompt=LONG) for _ in range(4)]
        goods = [pool.submit(ask, server, prompt="good") for _ in range(8)]
        assert {one.result()[0] for one in goods} == {200}
        for one in large:
            status, text = one.result()
            assert (status, "bytes; expected at most 511 tokens" in text) == (400, True), text[:300]


ENDLESS_FILES = {
    "endless": "while True:\n    pass\n",
    "stubborn": """
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
""",
}


@pytest.mark.soak
@pytest.mark.parametrize("kind", ENDLESS_FILES)
def test_a_processors_file_that_never_ends_fails_its_load_by_name(tmp_path: Path, kind: str) -> None:
    """Whether it lets itself be ended or takes its worker with it; a neighbour is served meanwhile."""
    root = tmp_path / "store"
    write(root / "tiny", "llama")
    folder = write(root / kind, "llama")
    (root / "tiny" / "own.py").write_text("def x(ids, scores):\n    return scores\n")
    (folder / "own.py").write_text(ENDLESS_FILES[kind])
    processors = "hf.logits_processors=one=own.py:x,hf.trust_remote_code=true"
    words = ("--engine-parameters", f"hf.slots=2,hf.threads=1,hf.max_context=512,{processors}")
    with serve_handlers(tmp_path / "log", root / "tiny", folder, *words) as serving:
        until(lambda: ask(serving, prompt="good")[0] == 200, serving.said)
        file = str(folder / "own.py")
        until(lambda: file in serving.said(), lambda: (ask(serving, prompt="good"), serving.said())[1])
        said = serving.said()
        assert f"{file} cannot be run: CallTooLong" in said or f"The file '{file}' has not returned" in said
        assert ask(serving, prompt="good")[0] == 200


def test_a_chat_template_without_end_ends_its_chats_alone(server: ServerProcess) -> None:
    with ThreadPoolExecutor(SLOTS) as pool:
        chats = [
            pool.submit(ask, server, "chat/completions", model="endless", messages=CHAT)
            for _ in range(SLOTS - 1)
        ]
        until(lambda: bool(readers(server)), server.said)
        for _ in range(3):
            assert ask(server, model="endless", prompt="good")[0] == 200
            assert ask(server, "chat/completions", messages=CHAT)[0] == 200
        assert not any(chat.done() for chat in chats), "the others were answered while it was being read"
        for chat in chats:
            status, text = chat.result()
            assert (status, "the chat template" in text) == (504, True), text
    assert ask(server, model="endless", prompt="good")[0] == 200


def test_nothing_is_read_for_clients_that_have_left(server: ServerProcess) -> None:
    body = json.dumps(
        {"model": "tiny", "prompt": LONG, "max_tokens": 4, "truncate_prompt_tokens": 8}
    ).encode()
    before = readers(server).keys()

    def busy() -> list[psutil.Process]:
        return [one for pid, one in readers(server).items() if pid not in before and is_busy(one)]

    with ExitStack() as plugs:
        for _ in range(2):
            plug = connect(server.port)
            plugs.callback(reset, plug)
            head = f"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
            plug.sendall(head.encode() + body)
        until(lambda: bool(busy()), server.said)
        (reader,) = busy()
        assert ask(server, prompt="good")[0] == 200
    reader.wait(60)  # it is killed, and no other one begins
    assert ask(server, prompt="good")[0] == 200
    assert not busy()


@pytest.mark.soak
def test_a_worker_that_dies_takes_what_reads_its_texts_along(server: ServerProcess) -> None:
    assert ask(server, "chat/completions", messages=CHAT)[0] == 200
    found = readers(server)
    parents = [one.parent() for one in found.values()]
    for worker in server.workers():
        if any(parent in worker.children() for parent in parents):
            worker.kill()
    _, alive = psutil.wait_procs([*found.values(), *filter(None, parents)], 30)
    assert not alive
    until(lambda: ask(server, "chat/completions", messages=CHAT)[0] == 200, server.said)
