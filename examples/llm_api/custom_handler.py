"""A TorchServe handler that streams what a Hugging Face model generates from `text` or `inputs_embeds`.

Variables: MODEL_PATH, MAX_INPUT_TOKENS, MAX_NEW_TOKENS, DTYPE, END_OF_STREAM_TOKEN. Any other field goes to `generate`.
"""

import json
import os
from threading import Thread

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, TextIteratorStreamer
from ts.handler_utils.utils import send_intermediate_predict_response
from ts.torch_handler.base_handler import BaseHandler


class LlmHandler(BaseHandler):
    """Answers one request at a time, piece by piece; the last piece is the end token."""

    def initialize(self, context):
        """Load the model, once per worker."""
        path, dtype = os.environ["MODEL_PATH"], os.environ.get("DTYPE", "bfloat16")
        torch.set_num_threads(int(os.environ.get("NUM_THREADS", "1")))
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, dtype)).eval()
        self.most_in = int(os.environ.get("MAX_INPUT_TOKENS", "2048"))
        self.most_new = int(os.environ.get("MAX_NEW_TOKENS", "2048"))
        self.end = os.environ.get("END_OF_STREAM_TOKEN", "<|endoftext|>")
        self.initialized = True

    def handle(self, data, context):
        """Stream the answer to each request of the batch."""
        answers = [self.stream(self.fields(row)) for row in data]
        while any(pieces := [next(answer, "") for answer in answers]):
            send_intermediate_predict_response(pieces, context.request_ids, "text", 200, context)
        return [self.end] * len(data)

    def fields(self, row):
        """Return a request's fields: those of a form come as bytes, those of JSON in its body."""
        row = row.get("body", row)
        return {name: self.value(value) for name, value in row.items()}

    def value(self, value):
        """Read a number or a list out of a form field; anything else is text."""
        if isinstance(value, (bytes, bytearray)):
            value = value.decode()
            try:
                return json.loads(value)
            except ValueError:
                return value
        return value

    def stream(self, fields):
        """Yield pieces of text while the model generates."""
        text, embeds = fields.pop("text", None), fields.pop("inputs_embeds", None)
        if embeds is not None:
            prompt = {"inputs_embeds": torch.tensor(embeds)[None].to(self.model.dtype)}
        else:
            prompt = self.tokenizer(str(text), return_tensors="pt", truncation=True, max_length=self.most_in)
        streamer = TextIteratorStreamer(self.tokenizer, skip_prompt=embeds is None, skip_special_tokens=True)
        told = {"max_new_tokens": self.most_new, "do_sample": False, **fields, **prompt, "streamer": streamer}
        worker = Thread(target=self.model.generate, kwargs=told)
        worker.start()
        yield from (piece for piece in streamer if piece)
        worker.join()
