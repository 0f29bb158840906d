"""Opens a model with vLLM: its environment and arguments, the engine, a test that it computes, and what reads texts."""

import logging
import os
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from trivium.engines.hf.folder import unfit
from trivium.engines.hf.lora.limits import AdapterLimits
from trivium.engines.hf.prompt_work import TokenizerSource
from trivium.engines.hf.prompts import PromptInput, PromptTokenizer
from trivium.engines.hf.requests import GenerationLimits
from trivium.engines.hf.text_loading import open_tokenizer, prompt_reader, text_work, token_reading
from trivium.engines.hf.vllm.adapters import VllmAdapters
from trivium.engines.hf.vllm.counters import StepCounters
from trivium.engines.hf.vllm.description import DescribedVllm, describe_vllm, shown
from trivium.engines.hf.vllm.engine_thread import EngineThread
from trivium.engines.hf.vllm.installed import version
from trivium.engines.hf.vllm.runner import OpenedVllm, VllmRunner
from trivium.engines.hf.vllm.sampling import sampling_arguments
from trivium.types.errors import Code, ServeError, named
from trivium.types.generation import Sampling
from trivium.types.interfaces import StepOutlet
from trivium.types.running import Placement
from trivium.types.spec import Device, ModelSpec

log = logging.getLogger(__name__)

QUIET: Mapping[str, str] = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
"""Nothing is reported to anybody, nothing fetched; processes begin anew, since this one has threads."""

_CPU_BYTES = 2**32
"""For keys and values on a processor, where nobody says how many: vLLM would take a share of the machine."""
_TEST_SECONDS = 300.0
_TEST_TOKENS = 2
_BYTES = {"float32": 4, "float": 4}


def open_vllm(spec: ModelSpec, placement: Placement, outlet: StepOutlet) -> VllmRunner:
    """Return the opened model. Raises as `Engine.facts` says, and OUT_OF_MEMORY."""
    told = describe_vllm(spec)
    settle(os.environ, placement, told.arguments)
    arguments = {**_defaults(spec, told, placement), **told.arguments}
    counters = StepCounters()
    core = EngineThread(_opener(arguments, counters), outlet.wake)
    try:
        engine = core.start()
    except BaseException as error:  # code of a folder may ask for the exit
        raise _unopened(spec, error) from error
    try:
        opened = _opened(spec, told, core, counters)
        _test(spec, opened)
        reader = _reader(spec, told, opened, outlet)
        adapters = VllmAdapters(spec, core, _limits(told))
    except BaseException:
        core.close()
        raise
    log.info("model '%s': vLLM %s with %s", spec.name, version(), shown(arguments))
    del engine
    return VllmRunner(opened, reader, adapters, outlet)


def settle(environment: MutableMapping[str, str], placement: Placement, arguments: Mapping[str, Any]) -> None:
    """Set what vLLM and its processes read in the environment: how they behave, and which GPUs they see. What somebody
    has set stays, but for the GPUs: the instance's own, and as many behind it as the model is split over.
    """
    for name, value in QUIET.items():
        environment.setdefault(name, value)
    if placement.device is not Device.GPU:
        environment.setdefault("VLLM_TARGET_DEVICE", "cpu")
        return
    seen = [one.strip() for one in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if one.strip()]
    first, count = placement.device_id, gpus_of(arguments)
    mine = placement.device_ids or tuple(range(first, first + count))
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(seen[one] if one < len(seen) else str(one) for one in mine)


def gpus_of(arguments: Mapping[str, Any]) -> int:
    """Return over how many GPUs of this machine a model is split."""
    return int(arguments.get("tensor_parallel_size", 1)) * int(arguments.get("pipeline_parallel_size", 1))


def _defaults(spec: ModelSpec, told: DescribedVllm, placement: Placement) -> dict[str, Any]:
    """Return the arguments that are always ours, and those that hold where nobody says otherwise."""
    found: dict[str, Any] = {
        "model": str(told.files.folder),
        "skip_tokenizer_init": True,
        "enable_log_requests": False,
        "generation_config": "vllm",
        "use_tqdm_on_load": False,
    }
    if placement.device is not Device.GPU:
        found |= {"kv_cache_memory_bytes": _CPU_BYTES, "enforce_eager": True}
    if told.chosen.trust_remote_code:
        found["trust_remote_code"] = True
    return found


def _opener(arguments: Mapping[str, Any], counters: StepCounters) -> Callable[[], Any]:
    def open_engine() -> Any:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments), stat_loggers=[counters.opened])

    return open_engine


def _opened(spec: ModelSpec, told: DescribedVllm, core: EngineThread, counters: StepCounters) -> OpenedVllm:
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    config = core.engine.vllm_config
    model = config.model_config
    limits = GenerationLimits(
        spec.name, int(model.max_model_len), int(model.get_vocab_size()), int(model.get_hidden_size())
    )
    source = _source(told)
    tokenizer = open_tokenizer(spec, source, None)
    ends = told.texts.with_ends({"the tokenizer (eos_token)": tokenizer.eos_token_id}, limits.vocabulary)
    takes_embeds = bool(told.arguments.get("enable_prompt_embeds"))
    width = _BYTES.get(str(model.dtype).removeprefix("torch."), 2)
    tokens = (config.cache_config.num_gpu_blocks or 0) * (config.cache_config.block_size or 0)
    return OpenedVllm(
        core,
        int(config.scheduler_config.max_num_seqs),
        limits,
        token_reading(tokenizer, ends),
        told.texts.sampling,
        counters,
        _inputs(str(model.dtype).removeprefix("torch.")),
        lambda **arguments: SamplingParams(output_kind=RequestOutputKind.DELTA, **arguments),
        takes_embeds,
        bool(spec.functions),
        tokens * told.numbers_per_token * width,
    )


def _inputs(dtype: str) -> Callable[[PromptInput, str], Any]:
    """Return what makes vLLM's input of a prompt, and of the salt under which its beginning is kept."""
    from vllm.inputs.engine import embeds_input, tokens_input

    def make(prompt: PromptInput, salt: str) -> Any:
        if prompt.embeds is None:
            return tokens_input(list(prompt.ids), cache_salt=salt or None)
        import torch

        data = torch.frombuffer(bytearray(prompt.embeds.data), dtype=torch.float32)
        rows = data.reshape(prompt.embeds.tokens, prompt.embeds.width)
        return embeds_input(rows.to(getattr(torch, dtype)), cache_salt=salt or None)

    return make


def _test(spec: ModelSpec, opened: OpenedVllm) -> None:
    """Have a few tokens computed: what vLLM cannot compute on this machine ends its engine only then."""
    told = sampling_arguments(Sampling(max_tokens=_TEST_TOKENS, temperature=0.0), _TEST_TOKENS, 0, False, ())
    ids = tuple(one % opened.limits.vocabulary for one in range(3, 3 + min(8, opened.limits.context - 3)))

    async def generated() -> int:
        outputs = opened.core.engine.generate(
            opened.inputs_of(PromptInput(ids), ""), opened.params_of(**told), "test of the load"
        )
        return sum([len(output.outputs[0].token_ids) async for output in outputs])

    try:
        count = opened.core.ask(generated(), _TEST_SECONDS)
    except (Exception, TimeoutError) as error:
        raise _unopened(spec, error.__cause__ or error) from error
    if not count:
        raise unfit(spec, "vLLM opened it, and made no token in a test.")


def _reader(spec: ModelSpec, told: DescribedVllm, opened: OpenedVllm, outlet: StepOutlet) -> Any:
    source = _source(told)
    tokenizer = open_tokenizer(spec, source, None)
    length, work = text_work(spec, source, tokenizer, opened.limits)
    texts = PromptTokenizer(tokenizer, opened.limits, length)
    return prompt_reader(spec, texts, work, opened.slots, outlet.wake)


def _source(told: DescribedVllm) -> TokenizerSource:
    return TokenizerSource(str(told.files.folder), "", told.chosen.trust_remote_code)


def _limits(told: DescribedVllm) -> AdapterLimits:
    return told.adapters


def _unopened(spec: ModelSpec, error: BaseException) -> ServeError:
    if isinstance(error, ServeError):
        return error
    text = named(error).strip()[:2000]
    words = text.lower()
    is_memory = isinstance(error, MemoryError) or "out of memory" in words or "kv cache" in words
    code = Code.OUT_OF_MEMORY if is_memory else Code.LOAD_FAILED
    return unfit(spec, f"vLLM {version()} cannot open it: {text} Its own lines in the log say more.", code)
