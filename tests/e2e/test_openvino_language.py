"""A language model of OpenVINO in the real server, without PyTorch in its process, asked by OpenAI's client."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
from tests.harness.language_models import text
from tests.harness.openvino_models import needs_genai, write_gguf_of, write_halved, write_openvino
from tests.harness.server_process import ServerProcess, serve, until

needs_genai()

PARAMETERS = "openvino-llm.threads=1,openvino-llm.slots=3,openvino-llm.precision=exact"
PROMPT = "The Python language"
GREEDY = {"temperature": 0, "max_tokens": 12}


@pytest.fixture(scope="module")
def halved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_halved(tmp_path_factory.mktemp("halved"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, halved: Path) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    (folder / "exported").mkdir()
    exported = write_openvino(folder / "exported", halved)
    gguf = write_gguf_of(halved, folder / "single.gguf")
    cut = folder / "cut"
    cut.mkdir()
    for file in exported.iterdir():
        data = file.read_bytes()
        (cut / file.name).write_bytes(data[: len(data) // 2] if file.suffix == ".bin" else data)
    words = ("--text-engine", "openvino", "--engine-parameters", PARAMETERS, "--ready-despite-failures")
    with serve(folder / "log", exported, gguf, cut, *words, models_raise=True) as served:
        yield served


@pytest.fixture
def client(server: ServerProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def completed(client: openai.OpenAI, **fields):
    return client.completions.create(**{"model": "exported", "prompt": PROMPT, **GREEDY, **fields})


def test_whole_and_streamed_answers_are_equal_and_of_either_form(client: openai.OpenAI) -> None:
    whole = completed(client)
    parts = list(completed(client, stream=True, stream_options={"include_usage": True}))
    texts = "".join(part.choices[0].text for part in parts if part.choices)
    assert texts == whole.choices[0].text
    assert len(parts) > 4
    assert parts[-1].usage == whole.usage
    assert whole.usage.completion_tokens == 12
    by_gguf = completed(client, model="single", prompt=[5, 6, 7, 8])
    assert by_gguf.choices[0].text == completed(client, prompt=[5, 6, 7, 8]).choices[0].text


def test_a_chat_is_written_by_the_models_template(client: openai.OpenAI) -> None:
    told = [{"role": "user", "content": "hello"}]
    chat = client.chat.completions.create(model="exported", messages=told, **GREEDY)
    written = completed(
        client, prompt="<|user|>hello</s><|assistant|>", extra_body={"add_special_tokens": False}
    )
    assert chat.choices[0].message.content == written.choices[0].text
    with pytest.raises(openai.BadRequestError, match="messages"):
        client.chat.completions.create(model="exported", messages=[{"role": "refuse", "content": "x"}])


def test_stop_texts_several_choices_seeds_and_a_log_probability(client: openai.OpenAI) -> None:
    whole = completed(client).choices[0].text
    stop = whole[3:5]
    stopped = completed(client, stop=stop).choices[0]
    assert stopped.text == whole[: whole.index(stop)]
    assert stopped.finish_reason == "stop"
    drawn = {"temperature": 0.9, "seed": 5, "n": 3}
    first, again = completed(client, **drawn), completed(client, **drawn)
    assert [one.text for one in first.choices] == [one.text for one in again.choices]
    assert len({one.text for one in first.choices}) == 3
    scored = completed(client, logprobs=0).choices[0].logprobs
    assert len(scored.token_logprobs) == 12
    assert all(one <= 0 for one in scored.token_logprobs)
    one = completed(client, logprobs=1).choices[0].logprobs
    assert [max(each, key=each.get) for each in one.top_logprobs] == one.tokens


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("logit_bias", {"logit_bias": {"5": 3}}),
        ("logprobs", {"logprobs": 3}),
        ("logprobs", {"logprobs": 1, "temperature": 1}),
        ("typical_p", {"extra_body": {"typical_p": 0.4}}),
        ("max_tokens", {"max_tokens": -5}),
        ("prompt", {"prompt": "long " * 3000}),
    ],
)
def test_what_it_does_not_know_is_refused_by_the_clients_own_name(
    client: openai.OpenAI, field: str, fields: dict
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        completed(client, **fields)
    assert field in caught.value.message
    assert completed(client).usage.completion_tokens == 12


def test_clients_that_leave_free_their_slots(server: ServerProcess, client: openai.OpenAI) -> None:
    body = {"model": "exported", "prompt": PROMPT, "max_tokens": 480, "ignore_eos": True, "stream": True}
    for _ in range(9):
        with httpx.stream("POST", f"{server.url}/v1/completions", json=body, timeout=30) as stream:
            next(stream.iter_bytes())
    assert completed(client).usage.completion_tokens == 12

    def is_idle() -> bool:
        found = httpx.get(f"{server.url}/metrics").text
        lines = [
            line for line in found.splitlines() if line.startswith("trivium_generation_cache_used_bytes")
        ]
        return bool(lines) and all(float(line.rsplit(" ", 1)[1]) == 0 for line in lines if "exported" in line)

    until(is_idle, server.said)


def test_many_at_once_are_answered_as_one_alone(client: openai.OpenAI) -> None:
    prompts = [text(number, 80 + 20 * number) for number in range(12)]
    alone = [completed(client, prompt=one).choices[0].text for one in prompts]
    found: dict[int, str] = {}

    def ask(number: int) -> None:
        found[number] = completed(client, prompt=prompts[number]).choices[0].text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found[number] == alone[number] for number in range(12)) >= 11


def test_a_damaged_folder_is_told_with_file_and_engine_and_the_others_serve(server: ServerProcess) -> None:
    log = server.said()
    lines = [line for line in log.splitlines() if "'cut'" in line or "cut/" in line]
    assert any("openvino" in line for line in lines), log
    assert httpx.get(f"{server.url}/v2/models/cut/ready").status_code == 400
    assert httpx.get(f"{server.url}/v2/models/exported/ready").status_code == 200


def test_no_process_of_it_has_pytorch(server: ServerProcess, client: openai.OpenAI) -> None:
    completed(client)
    for process in server.workers(recursive=True):
        maps = Path(f"/proc/{process.pid}/maps")
        if maps.exists():
            assert "libtorch" not in maps.read_text()


def test_the_death_of_its_process_is_answered_and_it_comes_back(
    server: ServerProcess, client: openai.OpenAI
) -> None:
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(completed(client, max_tokens=480, extra_body={"ignore_eos": True}))
        except openai.APIError as error:
            found.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    workers = [
        one
        for one in server.workers(recursive=True)
        if any("libopenvino_genai" in line for line in _maps(one.pid))
    ]
    assert workers
    for worker in workers:
        os.kill(worker.pid, signal.SIGKILL)
    thread.join(60)
    assert found

    def is_back() -> bool:
        try:
            return completed(client).usage.completion_tokens == 12
        except openai.APIError:
            return False

    until(is_back, server.said, 60)


def _maps(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []


def test_check_explains_the_folder(server: ServerProcess) -> None:
    told = httpx.get(f"{server.url}/v2/models/exported").json()
    assert "openvino" in json.dumps(told)
