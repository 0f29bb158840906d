"""A TorchServe handler that streams what a Hugging Face model generates from `text` or `inputs_embeds`.

Variables, each also below `handler:` of model-config.yaml: MODEL_NAME, MODEL_PATH, DEVICE_MAP, MAX_INPUT_TOKENS,
MAX_NEW_TOKENS, DTYPE, QUANTIZATION, END_OF_STREAM_TOKEN. Any other field of a request is a generation parameter of
transformers.
"""

import difflib
import json
import logging
import os
from threading import Event, Thread
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    GenerationConfig,
    StoppingCriteriaList,
    TextIteratorStreamer,
)
from ts.handler_utils.utils import send_intermediate_predict_response
from ts.torch_handler.base_handler import BaseHandler

DEFAULTS = {
    "MODEL_NAME": "",
    "MODEL_PATH": "",
    "DEVICE_MAP": "auto",
    "MAX_INPUT_TOKENS": "2048",
    "MAX_NEW_TOKENS": "2048",
    "DTYPE": "bfloat16",
    "QUANTIZATION": "None",
    "END_OF_STREAM_TOKEN": "<|endoftext|>",
}
QUANTIZED: dict[str, dict[str, Any]] = {
    "None": {},
    "8bit": {"load_in_8bit": True},
    "4bit": {"load_in_4bit": True},
}
INPUTS = ("text", "inputs_embeds")
PARAMETERS = sorted(name for name in vars(GenerationConfig()) if not name.startswith("_"))
WORDS = {"true": True, "false": False, "none": None}


class LlmHandler(BaseHandler):
    """Answers the requests of a batch piece by piece; the last piece of each is the end token."""

    def initialize(self, context: Any) -> None:
        """Load the model, once per worker."""
        told = settings(context)
        name = told["MODEL_NAME"] or context.model_name
        if not told["MODEL_PATH"]:
            raise RuntimeError(f"{name}: set MODEL_PATH to the folder of the model's weights")
        if told["QUANTIZATION"] not in QUANTIZED:
            raise RuntimeError(f"QUANTIZATION={told['QUANTIZATION']}: expected {', '.join(QUANTIZED)}")
        quantized = QUANTIZED[told["QUANTIZATION"]]
        self.most_in, self.most_new = int(told["MAX_INPUT_TOKENS"]), int(told["MAX_NEW_TOKENS"])
        self.end = told["END_OF_STREAM_TOKEN"]
        self.tokenizer = AutoTokenizer.from_pretrained(told["MODEL_PATH"])
        self.most_letters = self.most_in * max(map(len, self.tokenizer.get_vocab()))
        self.model = AutoModelForCausalLM.from_pretrained(
            told["MODEL_PATH"],
            dtype=getattr(torch, told["DTYPE"]),
            device_map=parsed(told["DEVICE_MAP"]),
            quantization_config=BitsAndBytesConfig(**quantized) if quantized else None,
        ).eval()
        logging.info("%s: %s on %s", name, told["MODEL_PATH"], self.model.device)
        self.initialized = True

    def handle(self, data: Any, context: Any) -> list[Any]:
        """Stream the answers of the batch; one that is through, or refused, does not hold up the others."""
        parts = [""] * len(data)
        live = {index: self.answer(row, index, context) for index, row in enumerate(data)}
        try:
            while True:
                for index, answer in list(live.items()):
                    parts[index], is_last = next(answer)
                    if is_last:
                        del live[index]
                if not live:
                    return parts
                send_intermediate_predict_response(parts, context.request_ids, "text", 200, context)
                parts = [""] * len(data)
        finally:
            for answer in live.values():
                answer.close()

    def answer(self, row: Any, index: Any, context: Any) -> Any:
        """Yield pieces of one answer, and whether each is the last. A request that cannot be answered gets a status and
        the reason; an answer that fails in its middle says why, and has no end token.
        """
        has_begun = False
        try:
            for piece in self.generated(self.prompt_and_parameters(fields_of(row))):
                has_begun = True
                yield piece, False
        except Exception as error:
            if has_begun:
                yield f"\n{type(error).__name__}: {error}", True
                return
            status = 400 if isinstance(error, (TypeError, ValueError)) else 500
            context.set_response_status(status, "Bad Request" if status == 400 else "Server Error", index)
            context.set_response_content_type(index, "application/json")
            yield json.dumps({"code": status, "type": type(error).__name__, "message": str(error)}), True
            return
        yield self.end, True

    def prompt_and_parameters(self, fields: Any) -> Any:
        """Return what `generate` is called with. ValueError says which field cannot be."""
        given = [name for name in INPUTS if name in fields]
        if len(given) != 1:
            raise ValueError(one_input(given, fields))
        for name in fields:
            if name not in (*INPUTS, *PARAMETERS):
                raise ValueError(f"{name} is no generation parameter{hint(name, PARAMETERS)}")
        value = fields.pop(given[0])
        prompt = self.encoded(value) if given == ["text"] else self.embedded(value)
        most = fields.pop("max_new_tokens", self.most_new)
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ValueError(f"max_new_tokens: found {str(most)[:40]!r}, expected a whole number from 1")
        temperature = fields.pop("temperature", 0)
        if not isinstance(temperature, (int, float)):
            raise ValueError(f"temperature: found {temperature!r}, expected a number")
        heat = {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
        return {**heat, **fields, **prompt, "max_new_tokens": min(most, self.most_new)}

    def encoded(self, text: Any) -> Any:
        """Return the tokens of a text, which is cut to what the model may be given."""
        if not isinstance(text, str):
            raise ValueError(f"text: found {type(text).__name__}, expected a text")
        tokens = self.tokenizer(
            text[: self.most_letters], return_tensors="pt", truncation=True, max_length=self.most_in
        )
        return {name: tokens[name].to(self.model.device) for name in ("input_ids", "attention_mask")}

    def embedded(self, rows: Any) -> Any:
        """Return word embeddings as a tensor of one prompt."""
        width = self.model.get_input_embeddings().embedding_dim
        if isinstance(rows, (int, float)):
            raise ValueError(
                "inputs_embeds: found one number; of a form's field that is repeated the last one counts. Send JSON: "
                'requests.post(url, json={"inputs_embeds": rows})'
            )
        table = torch.tensor(rows if isinstance(rows, list) else []).to(self.model.device, self.model.dtype)
        if table.dim() != 2 or table.shape[1] != width or not 1 <= len(table) <= self.most_in:
            shape = list(table.shape)
            raise ValueError(f"inputs_embeds: found {shape}, expected 1 to {self.most_in} rows of {width}")
        return {"inputs_embeds": table[None]}

    def generated(self, told: Any) -> Any:
        """Yield pieces of text while a thread generates. What it raises is raised here, to who waits for the pieces; it
        stops when nobody does.
        """
        left, failed = Event(), []
        streamer = TextIteratorStreamer(
            self.tokenizer, skip_prompt="inputs_embeds" not in told, skip_special_tokens=True
        )
        criteria = StoppingCriteriaList(
            [lambda ids, scores, **_: torch.full((len(ids),), left.is_set(), device=ids.device)]
        )

        def run() -> None:
            try:
                self.model.generate(
                    **told, streamer=streamer, stopping_criteria=criteria, tokenizer=self.tokenizer
                )
            except BaseException as error:
                failed.append(error)
            finally:
                streamer.on_finalized_text("", stream_end=True)

        thread = Thread(target=run, daemon=True)
        thread.start()
        try:
            yield from (piece for piece in streamer if piece)
        finally:
            left.set()
        thread.join()
        if failed:
            raise failed[0]


def settings(context: Any) -> dict[str, Any]:
    """Return each variable's value: of model-config.yaml, the environment, or its default."""
    own = (context.model_yaml_config or {}).get("handler") or {}
    own = {name.upper(): str(value) for name, value in own.items()}
    return {name: own.get(name) or os.environ.get(name) or default for name, default in DEFAULTS.items()}


def fields_of(row: Any) -> dict[str, Any]:
    """Return a request's fields: those of JSON are in its body, those of a form are bytes, and hold JSON or text."""
    body = row.get("body", row)
    if not isinstance(body, dict):
        raise ValueError("expected a form, or a JSON object, with text or inputs_embeds")
    return {name: value if name == "text" else parsed(value) for name, value in map(decoded, body.items())}


def decoded(item: Any) -> Any:
    """Return a field with its text in place of bytes."""
    name, value = item
    return name, value.decode() if isinstance(value, (bytes, bytearray)) else value


def parsed(text: Any) -> Any:
    """Return the value that a text stands for in JSON or in Python; any other text is itself."""
    if not isinstance(text, str):
        return text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def one_input(given: Any, fields: Any) -> Any:
    """Return the sentence for a request that does not have exactly one input."""
    if given:
        return "found text and inputs_embeds, expected one of them"
    near = next((name for name in fields if difflib.get_close_matches(name, INPUTS)), "")
    found = near or ", ".join(sorted(fields)[:10]) or "nothing"
    return f"found {found}, expected text or inputs_embeds{hint(near, INPUTS)}"


def hint(name: Any, known: Any) -> str:
    """Return a question for the name that was meant, if one is near."""
    near = difflib.get_close_matches(name, known, 1)
    return f": did you mean {near[0]}?" if near else ""
