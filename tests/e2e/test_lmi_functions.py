"""Functions of a model.py around a tiny language model in the real server: documents, own requests, faults.

The files are made after what people posted: LMI's guides of its releases, and reports on its tracker.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness.language_models import sentence_pieces, write
from tests.harness.server_process import ServerProcess, serve

ROLLING = ("engine=Python", "option.rolling_batch=vllm")
ASYNCHRONOUS = (
    "engine=Python",
    "option.async_mode=true",
    "option.entryPoint=djl_python.lmi_vllm.vllm_async_service",
    "option.rolling_batch=disable",
)
SIZES = ("option.max_rolling_batch_size=2", "option.max_model_len=128", "option.generation_config=vllm")
NEWER = """\
import json
from djl_python.output_formatter import RequestOutput, output_formatter

@output_formatter
def lines(request_output: RequestOutput) -> str:
    best = request_output.sequences[request_output.best_sequence_index]
    token, is_first, is_last = best.get_next_token()
    told = {"token_id": token.id, "text": token.text, "log_prob": token.log_prob}
    if is_last:
        told |= {"finish_reason": best.finish_reason, "prompt": len(request_output.prompt_tokens_details)}
    return json.dumps(told) + "\\n"
"""
OWN_REQUESTS = """\
import json
from djl_python import Input
from djl_python.encode_decode import decode
from djl_python.input_parser import input_formatter
from djl_python.output_formatter import TextGenerationOutput, output_formatter
from djl_python.request_io import TextInput

class MyInput(TextInput):
    trace: str

@input_formatter
def read(input_item: Input, **kwargs) -> TextInput:
    document = decode(input_item, input_item.get_property("Content-Type"))
    mine = MyInput()
    mine.input_text = document["question"]
    mine.parameters = {"max_new_tokens": document["size"], "ignore_eos_token": True, "n": document.get("n", 1)}
    mine.trace = document["trace"]
    return mine

@output_formatter
def whole(request_output: TextGenerationOutput) -> str:
    if not request_output.finished:
        return ""
    told = [
        {"text": "".join(token.text for token in one.tokens), "score": sum(token.log_prob for token in one.tokens)}
        for one in request_output.sequences.values()
    ]
    return json.dumps({"trace": request_output.input.trace, "answers": told})
"""
DOCUMENTS = """\
import helper
from djl_python.input_parser import input_formatter
from djl_python.output_formatter import output_formatter

@input_formatter
def custom_input_formatter(decoded_payload: dict, tokenizer=None, **kwargs) -> dict:
    if "inputPrompt" in decoded_payload:
        decoded_payload["inputs"] = decoded_payload.pop("inputPrompt")
    decoded_payload.setdefault("parameters", {}).setdefault("max_new_tokens", 5)
    if decoded_payload.pop("count", False):
        decoded_payload["parameters"]["max_new_tokens"] = len(tokenizer.encode(decoded_payload["inputs"]))
    return decoded_payload

@output_formatter
def custom_output_formatter(response_data: dict) -> dict:
    if "generated_text" in response_data:
        response_data["generated_text"] = helper.marked(response_data["generated_text"] or "")
        response_data["custom_formatter_applied"] = True
    return response_data
"""
FOLDERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "newer": (NEWER, ROLLING),
    "requests": (OWN_REQUESTS, ROLLING),
    "documents": (DOCUMENTS, ASYNCHRONOUS),
}
LMI = {"max_new_tokens": 6, "ignore_eos_token": True}
PROMPT = "Once upon a"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("models")
    made = sentence_pieces()
    weights = write(
        folder / "weights", "llama", made=made, vocab_size=len(made), bos_token_id=1, eos_token_id=2
    )
    places = [
        staged(folder, name, code, *lines, f"option.model_id={weights}")
        for name, (code, lines) in FOLDERS.items()
    ]
    (folder / "documents" / "helper.py").write_text("def marked(text):\n    return '[MINE] ' + text\n")
    words = ("--engine-parameters", "hf.threads=1", "--profile", "djl")
    with serve(folder / "log", *places, *words, models_raise=True) as served:
        yield served


def staged(folder: Path, name: str, code: str, *lines: str) -> Path:
    place = folder / name
    place.mkdir()
    (place / "serving.properties").write_text("\n".join((*lines, *SIZES)) + "\n")
    if code:
        (place / "model.py").write_text(code)
    return place


def asked(server: ServerProcess, name: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/predictions/{name}", json=body, timeout=60)


def predicted(server: ServerProcess, name: str, **body: Any) -> httpx.Response:
    answer = asked(server, name, **body)
    assert answer.status_code == 200, answer.text
    return answer


def plain(server: ServerProcess, **parameters: Any) -> Any:
    return predicted(
        server, "newer:engine", inputs=PROMPT, parameters={**LMI, "details": True, **parameters}
    ).json()


@pytest.mark.parametrize("stream", [False, True])
def test_a_function_of_the_newer_signature_writes_each_token(server: ServerProcess, stream: bool) -> None:
    expected = plain(server)["details"]["tokens"]
    answer = predicted(server, "newer", inputs=PROMPT, parameters=LMI, stream=stream)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["token_id"] for line in lines] == [token["id"] for token in expected]
    assert [line["log_prob"] for line in lines] == pytest.approx(
        [token["log_prob"] for token in expected], abs=1e-4
    )
    assert (lines[-1]["finish_reason"], lines[-1]["prompt"] > 2) == ("length", True)


def test_a_request_of_ones_own_form_and_an_answer_of_all_sequences(server: ServerProcess) -> None:
    one = predicted(server, "requests", question=PROMPT, size=6, trace="t7").json()
    assert one["trace"] == "t7"
    assert [answer["text"] for answer in one["answers"]] == [plain(server)["generated_text"]]
    two = predicted(server, "requests", question=PROMPT, size=4, trace="t8", n=2).json()
    assert len(two["answers"]) == 2
    assert all(answer["score"] < 0 for answer in two["answers"])


def test_documents_are_changed_on_both_ways(server: ServerProcess) -> None:
    same = plain(server, max_new_tokens=5)["generated_text"]
    greedy = {"do_sample": False, "max_new_tokens": 5, "ignore_eos": True}
    answer = predicted(server, "documents", inputPrompt=PROMPT, parameters=greedy)
    assert answer.json()["generated_text"] == "[MINE] " + same
    assert answer.json()["custom_formatter_applied"] is True
    chat = predicted(server, "documents", prompt=PROMPT, max_tokens=3, temperature=0)
    assert chat.json()["object"] == "text_completion"
    streamed = predicted(server, "documents", inputs=PROMPT, parameters=greedy, stream=True)
    lines = [json.loads(line) for line in streamed.text.splitlines()]
    assert lines[-1]["generated_text"] == "[MINE] " + same
    counted = predicted(
        server, "documents", inputs=PROMPT, parameters={"details": True, "ignore_eos": True}, count=True
    )
    assert counted.json()["details"]["generated_tokens"] >= 3


def test_what_a_function_raises_names_the_file_and_the_line(server: ServerProcess) -> None:
    refused = asked(server, "requests", inputs="x")
    assert refused.status_code == 424
    text = "Custom input formatter failed: KeyError: 'question' (model.py, line 15)"
    assert refused.json() == {"code": 424, "error": text}


def test_a_request_may_name_a_formatter_of_the_server(server: ServerProcess) -> None:
    answer = predicted(server, "newer", inputs=PROMPT, parameters={**LMI, "output_formatter": "json"})
    assert answer.json() == {"generated_text": plain(server)["generated_text"]}
    assert answer.headers["content-type"] == "application/json"


def test_what_the_model_refuses_is_refused_as_without_functions(server: ServerProcess) -> None:
    for body in ({"inputs": PROMPT, "parameters": {"top_p": 7}}, {"inputs": ""}, {"inputs": "a " * 500}):
        bare, around = asked(server, "newer:engine", **body), asked(server, "newer", **body)
        assert (around.status_code, around.json()) == (bare.status_code, bare.json()), body


def test_a_client_that_leaves_ends_its_text(server: ServerProcess) -> None:
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": 120, "ignore_eos_token": True}, "stream": True}
    for _ in range(6):  # two are in work at once: the others would wait for the first ones' ends
        with httpx.stream("POST", f"{server.url}/predictions/newer", json=body, timeout=60) as answer:
            assert next(answer.iter_lines())
    assert predicted(server, "newer", inputs=PROMPT, parameters=LMI).text
