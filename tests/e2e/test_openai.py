"""Models that generate, asked by real clients in every dialect: OpenAI's, langchain's, Triton's, LMI's, the LLM-API's.

The model is a script, so that what is said is known; what it was asked it says on request.
"""

import asyncio
import json
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import numpy as np
import openai
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from langchain_openai import ChatOpenAI
from tests.harness.scripted_server import TEXTS, copied_source, script, scripted
from tests.harness.server_process import ServerProcess, until

ANSWER = TEXTS["*"]
PROFILES = ("native", "djl", "torchserve")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module", params=PROFILES)
def server(
    request: pytest.FixtureRequest, source: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp(request.param)
    parameters = {"end_of_stream_token": "<end>"}
    models = (
        script(folder / "m", parameters=parameters),
        script(folder / "slow", pause=0.3, queue=1),
    )
    with scripted(source, folder / "log", "--profile", request.param, *models) as server:
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def asked(content: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}], **fields}


# -- OpenAI ------------------------------------------------------------------------------------------------


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["m", "slow"]
    assert client.models.retrieve("m").owned_by == "trivium"
    with pytest.raises(openai.NotFoundError, match="There is no model 'none'") as caught:
        client.models.retrieve("none")
    assert caught.value.code == "model_not_found"


def test_a_chat(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**asked("hi", temperature=0, n=2, user="u", seed=1))
    assert [choice.message.content for choice in whole.choices] == [ANSWER] * 2
    assert [choice.finish_reason for choice in whole.choices] == ["stop"] * 2
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (1, 12)
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "part"}]
    assert (
        client.chat.completions.create(**asked(parts, max_completion_tokens=2)).choices[0].message.content
        == "The capital "
    )


def test_a_streamed_chat(client: openai.OpenAI) -> None:
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(**asked("hi", n=2, stream=True, stream_options=options)))
    texts: dict[int, str] = {0: "", 1: ""}
    reasons = []
    for chunk in chunks[:-1]:
        assert chunk.usage is None
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    assert texts == {0: ANSWER, 1: ANSWER}
    assert reasons == ["stop", "stop"]
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 13)
    assert [choice.delta.role for choice in chunks[0].choices] == ["assistant"]


def test_log_probabilities_in_both_forms(client: openai.OpenAI) -> None:
    chat = client.chat.completions.create(**asked("many", logprobs=True, top_logprobs=2))
    content = chat.choices[0].logprobs.content
    assert [token.token for token in content] == ["one ", "two ", "three ", "four ", "five ", "six"]
    assert [(top.token, top.logprob) for top in content[0].top_logprobs] == [("one 0", -1.0), ("one 1", -2.0)]
    assert bytes(content[0].bytes) == b"one "
    plain = client.completions.create(model="m", prompt="many", logprobs=1).choices[0].logprobs
    assert plain.tokens[:2] == ["one ", "two "]
    assert plain.text_offset == [0, 4, 8, 14, 19, 24]
    assert plain.top_logprobs[0] == {"one 0": -1.0, "one ": -0.5}
    offsets: list[int] = []
    for chunk in client.completions.create(model="m", prompt="many", logprobs=0, stream=True):
        assert chunk.choices[0].logprobs.top_logprobs is None
        offsets += chunk.choices[0].logprobs.text_offset
    assert offsets == plain.text_offset


def test_completions(client: openai.OpenAI) -> None:
    whole = client.completions.create(model="m", prompt=["hi", "many"], n=2, echo=True)
    assert [choice.text for choice in whole.choices] == [f"hi{ANSWER}"] * 2 + [f"many{TEXTS['many']}"] * 2
    assert [choice.index for choice in whole.choices] == [0, 1, 2, 3]
    assert client.completions.create(model="m", prompt=[[1, 2], [3]]).usage.prompt_tokens == 3
    assert (
        client.completions.create(model="m", prompt=[1, 2], max_tokens=1).choices[0].finish_reason == "length"
    )
    stopped = client.completions.create(model="m", prompt="many", stop="thr").choices[0]
    assert (stopped.text, stopped.finish_reason) == ("one two ", "stop")
    pieces = [
        chunk.choices[0].text for chunk in client.completions.create(model="m", prompt="unicode", stream=True)
    ]
    assert "".join(pieces) == TEXTS["unicode"]
    assert len(pieces) > 3


def test_sampling_reaches_the_model_with_the_defaults_of_each_dialect(client: openai.OpenAI) -> None:
    def told(**fields: Any) -> dict[str, Any]:
        return dict(
            json.loads(client.completions.create(model="m", prompt="sampling", **fields).choices[0].text)
        )

    assert told() == {"samples": True, "max_tokens": 16}
    own = {"top_k": 5, "min_tokens": 20}
    assert told(temperature=0, top_p=0.5, seed=3, logit_bias={"7": -5}, extra_body=own) == {
        **own,
        "temperature": 0.0,
        "max_tokens": 20,
        "top_p": 0.5,
        "seed": 3,
        "logit_bias": {"7": -5.0},
    }
    chat = client.chat.completions.create(**asked("sampling"))
    assert json.loads(chat.choices[0].message.content) == {"samples": True}
    roles = client.chat.completions.create(
        model="m",
        messages=[{"role": "developer", "content": "be short"}, {"role": "user", "content": "messages"}],
    )
    assert json.loads(roles.choices[0].message.content) == [
        {"role": "system", "content": "be short"},
        {"role": "user", "content": "messages"},
    ]


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        (asked("hi", model="none"), None, "There is no model 'none'"),
        (asked("hi", temperature=3), "temperature", "from 0 to 2"),
        (asked("hi", tools=[{"type": "function", "function": {"name": "f"}}]), "tools", "not supported"),
        (asked("hi", response_format={"type": "json_object"}), "response_format", "not supported"),
        (asked("hi", max_tokens=5, max_completion_tokens=6), "max_tokens", "another value"),
        (
            asked([{"type": "image_url", "image_url": {"url": "x"}}]),
            "messages[0].content[0].type",
            "not supported",
        ),
        (asked("hi", messages=[]), "messages", "an empty list"),
        (asked("hi", extra_body={"guided_json": {}}), "guided_json", "not supported"),
        (asked("refused", stream=True), None, "longer than the context"),
    ],
)
def test_refusals_name_the_field(
    client: openai.OpenAI, fields: dict[str, Any], param: str | None, words: str
) -> None:
    with pytest.raises(openai.APIStatusError, match=words.replace("(", r"\(")) as caught:
        client.chat.completions.create(**fields)
    assert (400 <= caught.value.status_code < 500, caught.value.param) == (True, param)


def test_a_field_that_nobody_knows_is_named_in_the_answer(
    client: openai.OpenAI, server: ServerProcess
) -> None:
    for _ in range(2):
        answer = client.chat.completions.with_raw_response.create(**asked("hi", extra_body={"temprature": 1}))
        assert answer.headers["trivium-ignored"] == "temprature"
    words = "Did its sender mean 'temperature'?"
    until(lambda: words in server.said(), server.said)  # the log is written by a thread of its own
    assert server.said().count(words) == 1


def test_failures_before_and_in_mid_stream(client: openai.OpenAI) -> None:
    with pytest.raises(openai.InternalServerError, match="no number"):
        client.chat.completions.create(**asked("early", stream=True))
    seen = []
    stream = client.chat.completions.create(**asked("late", stream=True))
    with pytest.raises(openai.APIError, match="no number"):
        seen.extend(chunk.choices[0].delta.content for chunk in stream)
    assert "".join(seen) == "one two "
    with pytest.raises(openai.InternalServerError, match="cannot be computed"):
        client.completions.create(model="m", prompt="raises")
    assert client.completions.create(model="m", prompt="hi").choices[0].text == ANSWER


def test_a_full_queue_is_a_rate_limit(server: ServerProcess) -> None:
    async def story() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            body = {"model": "slow", "prompt": "many"}
            return list(await asyncio.gather(*(client.post("/v1/completions", json=body) for _ in range(8))))

    answers = asyncio.run(story())
    full = [answer for answer in answers if answer.status_code == 429]
    assert full
    assert all(answer.status_code in (200, 429) for answer in answers)
    assert full[0].json()["error"]["code"] == "rate_limit_exceeded"
    assert int(full[0].headers["retry-after"]) >= 1


def test_nothing_more_is_computed_for_a_client_that_left(
    server: ServerProcess, client: openai.OpenAI
) -> None:
    def stats() -> dict[str, Any]:
        rows = httpx.get(f"{server.url}/v2/models/slow/stats").json()["model_stats"]
        return dict(rows[0]["generation_stats"])

    before = stats()["wasted_tokens"]
    with client.completions.create(model="slow", prompt="many", stream=True) as stream:
        assert next(iter(stream)).choices[0].text == "one "
    until(lambda: stats()["wasted_tokens"] > before, server.said)
    steps = stats()["steps"]["count"]
    time.sleep(1.0)
    assert stats()["steps"]["count"] == steps


def test_the_asynchronous_client_and_langchain(server: ServerProcess) -> None:
    async def story() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            whole = await client.chat.completions.create(**asked("hi"))
            assert whole.choices[0].message.content == ANSWER
            text = ""
            async for chunk in await client.completions.create(model="m", prompt="hi", stream=True):
                text += chunk.choices[0].text
            assert text == ANSWER
        chat = ChatOpenAI(base_url=f"{server.url}/v1", api_key="none", model="m", temperature=0)
        assert (await chat.ainvoke("hi")).content == ANSWER
        assert "".join([str(part.content) async for part in chat.astream("hi")]) == ANSWER

    asyncio.run(story())
    chat = ChatOpenAI(base_url=f"{server.url}/v1", api_key="none", model="m", temperature=0)
    found = chat.invoke([("system", "be short"), ("user", "hi")])
    assert (found.content, found.usage_metadata["output_tokens"]) == (ANSWER, 6)
    assert "".join(str(part.content) for part in chat.stream("hi")) == ANSWER


# -- Triton ------------------------------------------------------------------------------------------------


def test_triton_over_http(server: ServerProcess) -> None:
    address = f"{server.url}/v2/models/m"
    whole = httpx.post(f"{address}/generate", json={"text_input": "hi", "parameters": {"max_tokens": 2}})
    assert whole.json()["text_output"] == "hiThe capital "
    body = {
        "text_input": "hi",
        "stream": True,
        "sampling_parameters": '{"temperature": "0", "max_tokens": 3}',
    }
    with httpx.stream("POST", f"{address}/generate_stream", json=body) as stream:
        events = [json.loads(line[6:]) for line in stream.iter_lines() if line]
    assert [event["text_output"] for event in events] == ["The ", "capital ", "of "]
    for fields, words in (
        (
            {"text_input": "hi", "sampling_parameters": '{"guided_json": 1}'},
            "sampling_parameters.guided_json",
        ),
        ({"text_input": "hi", "top_p": 2}, "top_p"),
        ({"text_input": "hi", "input_ids": [1]}, "Exactly one of"),
        ({"inputs_embeds": [[1, 2], [3]]}, "inputs_embeds"),
    ):
        refused = httpx.post(f"{address}/generate", json=fields)
        assert (refused.status_code, words in refused.json()["error"]) == (400, True), refused.text
    taken = {"text_input": "hi", "sampling_parameters": '{"temprature": 1}'}
    answer = httpx.post(f"{address}/generate", json=taken)
    assert (answer.status_code, answer.headers["trivium-ignored"]) == (200, "sampling_parameters.temprature")
    client = triton_http.InferenceServerClient(server.address)
    inputs = [triton_http.InferInput("input_ids", [1, 2], "INT64")]
    inputs[0].set_data_from_numpy(np.array([[1, 2]], np.int64))
    found = client.infer("m", inputs, parameters={"temperature": 0.0}).as_numpy("text_output")
    assert found.tolist() == [ANSWER.encode()]


def test_triton_s_stream_over_grpc(server: ServerProcess) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    with triton_grpc.InferenceServerClient(server.grpc_address) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        inputs = [
            triton_grpc.InferInput("text_input", [1], "BYTES"),
            triton_grpc.InferInput("stream", [1], "BOOL"),
        ]
        inputs[0].set_data_from_numpy(np.array([b"hi"], object))
        inputs[1].set_data_from_numpy(np.array([True]))
        client.async_stream_infer("m", inputs, parameters={"max_tokens": 4})
        pieces = []
        final = False
        while not final:
            result, error = answers.get(timeout=60)
            assert error is None
            pieces.append(result.as_numpy("text_output")[0])
            final = result.get_response().parameters["triton_final_response"].bool_param
        client.stop_stream()
    assert b"".join(pieces) == b"The capital of France "


# -- LMI and the LLM-API -----------------------------------------------------------------------------------


def test_lmi(server: ServerProcess) -> None:
    if "djl" not in server.said() and "native" not in server.said():
        pytest.skip("TorchServe's protocol owns /predictions here")
    url = f"{server.url}/predictions/m"
    whole = httpx.post(url, json={"inputs": "hi", "parameters": {"return_full_text": True}})
    assert whole.json() == {"generated_text": f"hi{ANSWER}"}
    told = json.loads(httpx.post(url, json={"inputs": "sampling"}).json()["generated_text"])
    assert told == {"samples": False, "max_tokens": 30}
    with httpx.stream("POST", url, json={"inputs": "many", "stream": True}) as stream:
        assert stream.headers["content-type"] == "application/jsonlines"
        lines = [json.loads(line) for line in stream.iter_lines()]
    assert "".join(line["token"]["text"] for line in lines) == TEXTS["many"] == lines[-1]["generated_text"]
    events = httpx.post(url, json={"inputs": "many", "parameters": {"output_formatter": "sse"}})
    assert events.headers["content-type"] == "text/event-stream"
    assert events.text.count("data: ") == 6
    chat = httpx.post(
        f"{server.url}/invocations?model_name=m", json={"messages": [{"role": "user", "content": "hi"}]}
    )
    assert chat.json()["choices"][0]["message"]["content"] == ANSWER
    assert chat.json()["choices"][0]["finish_reason"] == "eos_token"
    taken = httpx.post(url, json={"inputs": "hi", "parameters": {"temprature": 1}})
    assert (taken.status_code, taken.headers["trivium-ignored"]) == (200, "parameters.temprature")
    for fields in (
        {"inputs": "hi", "parameters": {"num_beams": 4}},
        {"inputs": "early", "stream": True},
        {},
    ):
        failed = httpx.post(url, json=fields)
        assert (failed.status_code, failed.json()["code"]) == (424, 424)
    late = httpx.post(url, json={"inputs": "late", "stream": True})
    assert (late.status_code, json.loads(late.text.splitlines()[-1])["error"]) == (
        200,
        "The model computed no number.",
    )


def test_the_llm_api(server: ServerProcess) -> None:
    if "torchserve profile" not in server.said():
        pytest.skip("DJL's protocol owns /predictions here")
    url = f"{server.url}/predictions/m"

    async def story() -> None:
        async with aiohttp.ClientSession() as session:
            for body in (
                {"data": {"text": "hi", "temperature": "0.5"}},
                {"json": {"text": "hi", "temperature": 0.5}},
            ):
                async with session.post(url, **body) as answer:
                    chunks = [chunk async for chunk, _ in answer.content.iter_chunks()]
                    assert answer.status == 200
                assert b"".join(chunks).decode() == f"{ANSWER}<end>"
                assert len(chunks) > 2
            embeds = {"inputs_embeds": json.dumps([[0.0, 1.0], [2.0, 3.0]])}
            async with session.post(url, data=embeds) as answer:
                assert (await answer.text()) == f"{ANSWER}<end>"
            async with session.post(url, json={"text": "hi", "inputs_embeds": [[1.0]]}) as answer:
                assert (answer.status, "Exactly one" in await answer.text()) == (400, True)
            async with session.post(url, data={"text": "hi", "top_p": "high"}) as answer:
                assert (answer.status, "top_p" in await answer.text()) == (400, True)

    asyncio.run(story())


def test_counts_of_clients_and_of_the_server_agree(server: ServerProcess, client: openai.OpenAI) -> None:
    def counted() -> int:
        stats = httpx.get(f"{server.url}/v2/models/m/stats").json()["model_stats"][0]["generation_stats"]
        return int(stats["generated_tokens"])

    before = counted()
    usage = client.chat.completions.create(**asked("many", n=3)).usage
    assert usage.completion_tokens == counted() - before == 18
    assert "trivium_generated_tokens_total" in httpx.get(f"{server.url}/metrics").text
