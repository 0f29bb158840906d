"""Adapters of a language model over the real server: DJL's routes, every place of a request that names one, OpenAI's
client, Triton's generate; 32 requests while adapters come and go, and a killed worker that has them again.

Files as people post them, made tiny: the folder and the requests of LMI's guide to adapters with its options `pin` and
`load` (deepjavalibrary/djl-serving#2456, #2536), adapters that /v1/models lists (vllm-project/vllm#11761), and
`lora_name` of Triton's tutorial on its vLLM backend.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from tests.harness.language_models import text, tokenizer, write
from tests.harness.lora_folders import merged, write_adapter
from tests.harness.server_process import ServerProcess, serve, until

THREE = ("eng", "fra", "deu")
OPTIONS = (
    "engine=Python",
    "option.rolling_batch=vllm",
    "option.async_mode=false",
    "option.enable_lora=true",
    "option.max_loras=4",
    "option.max_lora_rank=8",
    "option.dtype=fp32",
    "option.max_rolling_batch_size=8",
    "option.max_model_len=128",
)
PROMPTS = [text(number, 60) for number in range(4)]
LENGTH = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DJL model with three adapters in its folder, and another one elsewhere; bare weights with one."""
    root = tmp_path_factory.mktemp("adapters")
    model = write(root / "llm", "llama")
    (model / "serving.properties").write_text("\n".join(OPTIONS))
    for number, name in enumerate(THREE):
        write_adapter(model / "adapters" / name, model, number + 1, strength=0.6)
    write_adapter(root / "more", model, 7, strength=0.6)
    write_adapter(root / "wide", model, 8, rank=64)
    bare = write(root / "bare", "llama")
    write_adapter(bare / "adapters" / "inside", bare, 1, strength=0.6)
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    named = f"hf.threads=1,hf.max_context=128,hf.adapters=outside={folder / 'more'}"
    words = ("--profile", "djl", "--engine-parameters", named)
    with serve(folder / "log", folder / "llm", folder / "bare", *words) as served:
        yield served


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[tuple[str, str], str]:
    """What the merged models say to each prompt, and the plain one."""
    torch = pytest.importorskip("torch")
    made, model = tokenizer(), folder / "llm"
    places = {name: model / "adapters" / name for name in THREE} | {"more": folder / "more"}
    found: dict[tuple[str, str], str] = {}
    none = write_adapter(folder / "none", model, strength=0.0)
    for name, place in {"": none, **places}.items():
        whole = merged(model, place)
        for prompt in PROMPTS:
            ids = torch.tensor([made(prompt)["input_ids"]])
            mask = torch.ones_like(ids)
            out = whole.generate(ids, attention_mask=mask, max_new_tokens=LENGTH, do_sample=False)
            found[name, prompt] = made.decode(out[0, ids.shape[1] :], skip_special_tokens=True)
    assert len({found[name, PROMPTS[0]] for name in ("", *places)}) == 5, "each says something else"
    return found


def managed(server: ServerProcess, method: str, path: str) -> tuple[int, dict[str, Any]]:
    answer = httpx.request(method, f"{server.url}{path}", timeout=60)
    return answer.status_code, answer.json()


def predicted(server: ServerProcess, prompt: str, query: str = "", **others: Any) -> httpx.Response:
    headers = others.pop("headers", {})
    body = {"inputs": prompt, "parameters": {"max_new_tokens": LENGTH}, **others}
    return httpx.post(f"{server.url}/predictions/llm{query}", json=body, headers=headers, timeout=60)


def test_the_folders_adapters_are_there_from_the_start(server: ServerProcess, folder: Path) -> None:
    status, told = managed(server, "GET", "/models/llm/adapters")
    assert status == 200
    own = [
        {"name": name, "src": str(folder / "llm" / "adapters" / name), "preload": True, "pin": False}
        for name in sorted(THREE)
    ]
    assert told == {"adapters": own}
    assert managed(server, "GET", "/models/llm/adapters/eng") == (
        200,
        next(r for r in own if r["name"] == "eng"),
    )


def test_every_place_of_a_request_that_names_one(
    server: ServerProcess, expected: dict[tuple[str, str], str]
) -> None:
    header = {"X-Amzn-SageMaker-Adapter-Identifier": "fra"}
    for prompt in PROMPTS:
        assert predicted(server, prompt).json()["generated_text"] == expected["", prompt]
        for answer in (
            predicted(server, prompt, "?adapter=fra"),
            predicted(server, prompt, headers=header),
            predicted(server, prompt, adapters="fra"),
            predicted(server, prompt, adapters=["fra"]),
            predicted(server, prompt, adapter="fra"),
        ):
            assert answer.status_code == 200, answer.text
            assert answer.json()["generated_text"] == expected["fra", prompt]
    for answer in (
        predicted(server, "x", "?adapter=none"),
        predicted(server, "x", headers={"X-Amzn-SageMaker-Adapter-Identifier": "none"}),
        predicted(server, "x", adapters="none"),
        predicted(server, "x", adapters=["none"]),
        predicted(server, "x", adapter="none"),
    ):
        assert answer.status_code == 424
        assert "The adapter none has not been registered" in answer.text
    two = predicted(server, "x", adapters=["eng", "fra"])
    assert two.status_code >= 400
    assert "adapters" in two.text


def test_the_routes_and_what_they_refuse(server: ServerProcess, folder: Path) -> None:
    more, wide = folder / "more", folder / "wide"
    assert managed(server, "POST", f"/models/llm/adapters?name=new&src={more}&pin=true&load=true") == (
        200,
        {"status": "Adapter new registered"},
    )
    assert managed(server, "GET", "/models/llm/adapters/new") == (
        200,
        {"name": "new", "src": str(more), "preload": True, "pin": True},
    )
    for method, path, status, words in (
        ("POST", f"?name=new&src={more}", 409, "new"),
        ("POST", f"?name=fifth&src={more}", 507, "4 adapters are held, and max_loras is 4"),
        ("POST", "/new/update?src=/nowhere", 424, "there is no folder /nowhere"),
        (
            "POST",
            f"/new/update?src={wide}",
            424,
            "its rank is 64, and max_lora_rank is 8. Set max_lora_rank to 64",
        ),
        ("POST", "?name=x&src=s3://b/x", 409, "no folder of this machine"),
        ("POST", "", 400, "The parameter name is required"),
        ("DELETE", "/none", 404, "The adapter none has not been registered"),
    ):
        answer = httpx.request(method, f"{server.url}/models/llm/adapters{path}", timeout=60)
        said = answer.text or answer.reason_phrase  # DJL's 507 has no body
        assert (answer.status_code, words in said) == (status, True), (path, said)
    assert managed(server, "DELETE", "/models/llm/adapters/new") == (
        200,
        {"status": "Adapter new unregistered"},
    )


def test_openais_client_calls_an_adapter_by_its_name(
    server: ServerProcess, folder: Path, expected: dict[tuple[str, str], str]
) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        listed = {one.id: one for one in client.models.list().data}
        assert {"llm", "bare", "inside", "outside", *THREE} <= listed.keys()
        told = listed["eng"].model_dump()
        assert (told["parent"], told["root"]) == ("llm", str(folder / "llm" / "adapters" / "eng"))
        assert listed["llm"].model_dump()["parent"] is None
        assert client.models.retrieve("fra").model_dump()["parent"] == "llm"
        for name in THREE:
            answer = client.completions.create(
                model=name, prompt=PROMPTS[0], max_tokens=LENGTH, temperature=0, stream=False
            )
            assert (answer.model, answer.choices[0].text) == (name, expected[name, PROMPTS[0]])
        streamed = client.completions.create(
            model="eng", prompt=PROMPTS[1], max_tokens=LENGTH, temperature=0, stream=True
        )
        assert (
            "".join(part.choices[0].text for part in streamed if part.choices) == expected["eng", PROMPTS[1]]
        )
        said = [{"role": "user", "content": "Hello"}]
        chats = {
            client.chat.completions.create(model=name, messages=said, max_tokens=8, temperature=0)
            .choices[0]
            .message.content
            for name in ("llm", *THREE)
        }
        assert len(chats) > 1
        with pytest.raises(openai.NotFoundError):
            client.completions.create(model="unknown", prompt="x")


def test_tritons_generate_names_it_among_its_parameters(server: ServerProcess) -> None:
    def generated(**parameters: Any) -> httpx.Response:
        given = {
            "text_input": PROMPTS[0],
            "parameters": {"temperature": 0, "max_tokens": LENGTH, **parameters},
        }
        return httpx.post(f"{server.url}/v2/models/bare/generate", json=given, timeout=60)

    texts = {
        str(generated(**told).json()["text_output"])
        for told in ({}, {"lora_name": "inside"}, {"lora_name": "outside"})
    }
    assert len(texts) == 3
    answer = generated(lora_name="none")
    assert answer.status_code == 424 or "none has not been registered" in answer.text
    assert answer.status_code >= 400


def test_32_requests_while_adapters_come_and_go_and_a_killed_worker_has_them_again(
    server: ServerProcess, folder: Path, expected: dict[tuple[str, str], str]
) -> None:
    async def ask(client: openai.AsyncOpenAI, name: str, prompt: str) -> tuple[str, str, str]:
        answer = await client.completions.create(
            model=name or "llm", prompt=prompt, max_tokens=LENGTH, temperature=0
        )
        return name, prompt, answer.choices[0].text

    async def manage() -> None:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            for _ in range(4):
                path = "/models/llm/adapters"
                more = f"?name=more&src={folder / 'more'}"
                assert (await client.post(f"{path}{more}")).status_code == 200
                eng = folder / "llm" / "adapters" / "eng"
                assert (await client.post(f"{path}/eng/update?src={eng}")).status_code == 200
                assert (await client.delete(f"{path}/more")).status_code == 200

    async def all_at_once() -> None:
        names = ("", *THREE)
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            asked = (ask(client, names[n % 4], PROMPTS[n // 4 % 4]) for n in range(32))
            *answers, _ = await asyncio.gather(*asked, manage())
        for name, prompt, said in answers:
            assert said == expected[name, prompt], (name, prompt)

    asyncio.run(all_at_once())
    path = f"/models/llm/adapters?name=more&src={folder / 'more'}"
    assert managed(server, "POST", path)[0] == 200
    victims = [worker.pid for worker in server.workers()]
    assert len(victims) >= 2, "one for each model"
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    until(
        lambda: predicted(server, PROMPTS[0], "?adapter=more").status_code == 200, lambda: "no worker is back"
    )
    for name in (*THREE, "more"):
        assert (
            predicted(server, PROMPTS[0], f"?adapter={name}").json()["generated_text"]
            == expected[name, PROMPTS[0]]
        )
