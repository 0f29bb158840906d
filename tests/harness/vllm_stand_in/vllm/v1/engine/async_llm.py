"""The engine: every token is a sum of what came before it.

Tokens of a prompt that make something happen: FAILS, the request fails; DIES, the engine does; ENDS, it ends each
sequence with a reason that none has; WAITS, no token comes until it is cancelled.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

from vllm.exceptions import VLLMValidationError
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

FAILS, DIES, ENDS, WAITS = 761, 762, 763, 764
BLOCK = 16
PACE = 0.001
"""Seconds that a step takes."""


class AsyncLLM:
    """One of them, in the process that made it."""

    made: ClassVar[list["AsyncLLM"]] = []

    def __init__(self, args):
        config = json.loads((Path(args.model) / "config.json").read_text())
        if args.tensor_parallel_size and args.tensor_parallel_size > 8:
            raise ValueError(
                f"World size ({args.tensor_parallel_size}) is larger than the number of GPUs (8)"
            )
        self.args = args
        context = args.max_model_len or config["max_position_embeddings"]
        self._vocabulary = config["vocab_size"]
        self.vllm_config = SimpleNamespace(
            model_config=SimpleNamespace(
                max_model_len=context,
                get_vocab_size=lambda: self._vocabulary,
                get_hidden_size=lambda: config["hidden_size"],
                dtype=f"torch.{args.dtype or 'float32'}",
            ),
            scheduler_config=SimpleNamespace(max_num_seqs=args.max_num_seqs or 256),
            cache_config=SimpleNamespace(num_gpu_blocks=1024, block_size=BLOCK),
        )
        self._slots = asyncio.Semaphore(args.max_num_seqs or 256)
        self._loggers = []
        self._seen = set()
        self.loras = {}
        self.most_loras = args.max_cpu_loras or 1
        self.aborted = []
        self.running = set()
        self.is_shut = False
        self._died = asyncio.Event()
        self.made.append(self)

    @classmethod
    def from_engine_args(cls, engine_args, start_engine_loop=True, usage_context=None, stat_loggers=None):
        """Make one."""
        made = cls(engine_args)
        made._loggers = [one(made.vllm_config, 0) for one in stat_loggers or ()]
        return made

    @property
    def errored(self):
        """Has it died?"""
        return self._died.is_set()

    async def generate(
        self,
        prompt,
        sampling_params,
        request_id,
        *,
        prompt_text=None,
        lora_request=None,
        tokenization_kwargs=None,
        trace_headers=None,
        priority=0,
        data_parallel_rank=None,
        session_id=None,
        kv_hints=None,
        reasoning_ended=None,
        reasoning_parser_kwargs=None,
    ) -> AsyncGenerator:
        """Yield what is made, a token at a time."""
        if self.errored:
            raise EngineDeadError
        ids = prompt.get("prompt_token_ids") or [7] * len(prompt["prompt_embeds"])
        self._judge(ids, sampling_params)
        self.running.add(request_id)
        try:
            async with self._slots:
                async for output in self._made(ids, sampling_params, lora_request, prompt.get("cache_salt")):
                    yield output
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted.append(request_id)
            raise
        finally:
            self.running.discard(request_id)

    async def abort(self, request_id, internal=False):
        """Nobody calls it."""
        self.aborted.append(request_id)

    async def add_lora(self, lora_request):
        """Open an adapter."""
        if not (Path(lora_request.lora_path) / "adapter_config.json").is_file():
            raise ValueError(f"No adapter found for {lora_request.lora_path}")
        if len(self.loras) >= self.most_loras:
            self.loras.pop(next(iter(self.loras)))
        self.loras[lora_request.lora_int_id] = lora_request.lora_path
        return True

    async def remove_lora(self, lora_id):
        """Let go of an adapter."""
        return self.loras.pop(lora_id, None) is not None

    def shutdown(self, timeout=None):
        """End it."""
        self.is_shut = True

    def _judge(self, ids, told):
        beyond = [one for one in told.logit_bias or () if one >= self._vocabulary]
        if beyond:
            raise VLLMValidationError(
                f"token_id(s) {beyond} in logit_bias contain out-of-vocab token ids.", parameter="logit_bias"
            )
        if len(ids) >= self.vllm_config.model_config.max_model_len:
            raise VLLMValidationError("the prompt is too long", parameter="input_tokens")

    async def _made(self, ids, told, lora, salt):
        cached = self._cached(ids, lora, salt) if told.prompt_logprobs is None else 0
        made = []
        room = min(told.max_tokens, self.vllm_config.model_config.max_model_len - len(ids))
        while True:
            await self._step()
            await self._happens(ids)
            token = self._next([*ids, *made], told, lora)
            made.append(token)
            stops = told.stop_token_ids or ()
            reason = "stop" if token in stops and len(made) >= told.min_tokens else None
            reason = reason or ("length" if len(made) >= room else None)
            if ENDS in ids:
                reason = "weariness"
            completion = SimpleNamespace(
                index=0,
                text="",
                token_ids=[token],
                cumulative_logprob=None,
                logprobs=None if told.logprobs is None else [self._scores(token, told.logprobs)],
                finish_reason=reason,
                stop_reason=None,
            )
            scores = None
            if told.prompt_logprobs is not None and len(made) == 1:
                scores = [None, *(self._scores(one, told.prompt_logprobs) for one in ids[1:])]
            yield SimpleNamespace(
                outputs=[completion],
                finished=reason is not None,
                num_cached_tokens=cached,
                prompt_logprobs=scores,
            )
            if reason is not None:
                return

    async def _step(self):
        stepping = asyncio.ensure_future(self._died.wait())
        try:
            await asyncio.wait([stepping], timeout=PACE)
        finally:
            stepping.cancel()
        if self.errored:
            raise EngineDeadError
        for logger in self._loggers:
            share = len(self.running) / 100
            logger.record(SimpleNamespace(kv_cache_usage=share), SimpleNamespace(num_preempted_reqs=0))

    async def _happens(self, ids):
        if FAILS in ids:
            raise EngineGenerateError from RuntimeError("a kernel of this request failed")
        if DIES in ids:
            self._died.set()
            raise EngineDeadError
        if WAITS in ids:
            await self._died.wait()
            raise EngineDeadError

    def _cached(self, ids, lora, salt):
        owner = (salt, lora.lora_int_id if lora else 0)
        blocks = [(owner, tuple(ids[:end])) for end in range(BLOCK, len(ids), BLOCK)]
        found = sum(1 for one in blocks if one in self._seen) * BLOCK
        self._seen.update(blocks)
        return found

    def _next(self, known, told, lora):
        if told.logit_bias:
            return max(told.logit_bias, key=told.logit_bias.get)
        drawn = 0 if told.temperature == 0 else 31 + (told.seed or 0)
        return 4 + (sum(known) * 31 + len(known) * 7 + drawn + (lora.lora_int_id if lora else 0)) % 750

    def _scores(self, token, count):
        others = [(token + step) % self._vocabulary for step in range(1, count)]
        ranked = [token, *others][: max(1, count)]
        return {one: SimpleNamespace(logprob=-0.5 - at, rank=at + 1) for at, one in enumerate(ranked)}
