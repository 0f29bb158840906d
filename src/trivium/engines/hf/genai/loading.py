"""Opens a model: judges its memory, opens its texts and its pipeline, and tests it before it serves.

Nothing is fetched, and no code of the folder runs. Whatever a broken file makes a library raise is LOAD_FAILED.
"""

import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trivium.engines.hf.folder import unfit
from trivium.engines.hf.genai.description import WHAT, DescribedGenai
from trivium.engines.hf.genai.options import NAME
from trivium.engines.hf.genai.pipeline import GenaiLibrary, GenaiPipeline, PipelineFault, PipelinePlan
from trivium.engines.hf.genai.runner import GenaiRunner, GenaiSettings
from trivium.engines.hf.gguf_model import GgufModel, open_gguf
from trivium.engines.hf.memory import KeyValueBudget, budget, shortage
from trivium.engines.hf.prompt_work import TokenizerSource
from trivium.engines.hf.requests import GenerationLimits
from trivium.machine.extras import install_command, lacking
from trivium.machine.memory import FreeMemory
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import StepOutlet
from trivium.types.spec import Device, ModelSpec

log = logging.getLogger(__name__)

_TEST_TOKENS, _TEST_STEPS = 3, 64


def open_runner(spec: ModelSpec, told: DescribedGenai, outlet: StepOutlet) -> GenaiRunner:
    """Return the opened model. LOAD_FAILED, OUT_OF_MEMORY, or UNSUPPORTED where a library is missing."""
    free = FreeMemory().read(with_gpus=False).get((Device.CPU, 0))
    if short := shortage(told.need, told.demand, free, told.chosen.precision):
        raise unfit(spec, short, Code.OUT_OF_MEMORY)
    held = budget(told.need, told.demand, free)
    sizes, slots = told.files.sizes, told.demand.slots
    library = _library()
    limits = GenerationLimits(spec.name, told.context, sizes.vocabulary, sizes.width, held)
    with ThreadPoolExecutor(1) as thread:
        # Opening a pipeline takes seconds, in which it lets go of the interpreter: all that needs none of it is read.
        opening = thread.submit(_pipeline, spec, told, library, held)
        tokenizer, source = _texts(spec, told)

        from trivium.engines.hf.prompts import PromptTokenizer
        from trivium.engines.hf.text_loading import prompt_reader, text_work, token_reading

        length, work = text_work(spec, source, tokenizer, limits)
        named = {"the tokenizer (eos_token)": tokenizer.eos_token_id}
        reading = token_reading(tokenizer, told.texts.with_ends(named, sizes.vocabulary))
        pipeline = opening.result()
    _test(spec, told, pipeline)
    log.info(
        "model '%s': %s by OpenVINO, precision %s, keys and values at most %.2f GB: %d tokens, in %d slots of up to %d",
        *(spec.name, sizes.architecture, told.chosen.precision, held.bytes / 1e9, held.tokens, slots),
        told.context,
    )
    settings = GenaiSettings(slots, held, told.chosen.prefix_cache, told.texts.sampling)
    texts = PromptTokenizer(tokenizer, limits, length)
    reader = prompt_reader(spec, texts, work, slots, outlet.wake)
    return GenaiRunner(pipeline, reader, reading, limits, settings, outlet)


def _library() -> GenaiLibrary:
    """Return the library. UNSUPPORTED where it cannot be imported, as with an OpenVINO of another version."""
    try:
        import openvino
        import openvino_genai
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            raise lacking(WHAT, error, NAME) from error
        words = "cannot be imported: openvino, openvino-tokenizers and openvino-genai must be of one version"
        raise ServeError(
            Code.UNSUPPORTED, f"{WHAT} need openvino_genai, which {words} ({error}). {install_command(NAME)}"
        ) from error
    return GenaiLibrary(openvino_genai, openvino.Tensor)


def _texts(spec: ModelSpec, told: DescribedGenai) -> tuple[Any, TokenizerSource]:
    """Return the tokenizer, by transformers: PyTorch, which takes seconds to come and quarrels with OpenVINO, is left
    out of this process, where it is not there already.
    """
    if "torch" not in sys.modules:
        sys.modules["torch"] = None  # type: ignore[assignment]
        os.environ["TRANSFORMERS_NO_ADVISORY_WARNINGS"] = "1"

    from trivium.engines.hf.text_loading import open_tokenizer

    found = told.files.checkpoint
    gguf = _gguf(spec, told) if found.gguf else None
    source = TokenizerSource(str(found.folder), found.gguf, False, gguf is not None)
    try:
        return open_tokenizer(spec, source, gguf), source
    except ServeError as error:
        words = f"the engine '{NAME}' needs the tokenizer of {told.files.opened}"
        raise ServeError(error.code, f"{error.message} ({words})") from error


def _gguf(spec: ModelSpec, told: DescribedGenai) -> GgufModel | None:
    from trivium.engines.hf.text_loading import unopened

    try:
        return open_gguf(told.files.opened)
    except Exception as error:
        raise unopened(spec, "GGUF file", error) from error


def _pipeline(
    spec: ModelSpec, told: DescribedGenai, library: GenaiLibrary, held: KeyValueBudget
) -> GenaiPipeline:
    tokens = told.chosen.prefill_chunk + told.demand.slots
    keeps = told.chosen.prefix_cache
    plan = PipelinePlan(str(told.files.opened), told.properties, held.blocks, tokens, keeps)
    try:
        return GenaiPipeline(library, plan)
    except PipelineFault as error:
        raise _unopened(spec, told, str(error)) from error


def _test(spec: ModelSpec, told: DescribedGenai, pipeline: GenaiPipeline) -> None:
    """Have a short text made: what is wrong with a model's layers is known before it serves."""
    last = told.files.sizes.vocabulary - 1
    settings = {"max_new_tokens": 1, "ignore_eos": True, "do_sample": False}
    try:
        handle = pipeline.begin([last] * _TEST_TOKENS, settings)
        for _ in range(_TEST_STEPS):
            pipeline.step()
            if made := handle.read():
                break
        else:
            raise PipelineFault(f"no token came in {_TEST_STEPS} steps")
    except PipelineFault as error:
        raise _unopened(spec, told, f"a first text failed: {error}") from error
    if made[0].id > last:
        words = f"it made token {made[0].id}, and {told.files.source} says that there are {last + 1}"
        raise _unopened(spec, told, words)


def _unopened(spec: ModelSpec, told: DescribedGenai, words: str) -> ServeError:
    is_memory = "memory" in words.lower() and "alloc" in words.lower()
    code = Code.OUT_OF_MEMORY if is_memory else Code.LOAD_FAILED
    hint = "Export it anew with: trivium pack --to openvino FOLDER"
    if told.files.checkpoint.gguf:
        hint = "Copy the file again, serve it with --text-engine hf, or export the original model"
    place = told.files.opened
    return unfit(spec, f"{place} cannot be opened by the engine '{NAME}': {words[:1000]}. {hint}.", code)
