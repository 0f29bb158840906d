"""DJL folders whose model of texts is batched statically: which are, and where each of their options goes."""

from pathlib import Path

import pytest
from tests.harness.djl_folders import make
from tests.harness.llm_folders import LLAMA, checkpoint

from trivium.servers.djl.folder.repository import DjlFormat
from trivium.types.findings import Finding
from trivium.types.spec import Batching, Defaults, Dynamic, ModelSpec

T5 = {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "is_encoder_decoder": True}
MODEL = "option.model_id=weights"


def read(tmp_path: Path, config: object, *settings: str) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    made = make(tmp_path, "m", MODEL, *settings)
    checkpoint(made / "weights", config)
    reading = DjlFormat().read(made, Defaults())
    if reading.specs:
        return reading.specs[0], reading.specs[0].reports
    return None, reading.unreadable[0].findings


def test_the_first_example_of_the_option_table(tmp_path: Path) -> None:
    spec, said = read(tmp_path, T5, "engine=Python", "option.dtype=fp16", "option.tensor_parallel_degree=1")
    assert spec is not None
    assert said == ()
    assert (spec.engine, spec.entry, spec.streams) == ("hf-tasks", "config.json", False)
    assert spec.parameters == {"task": "text2text-generation", "enable_streaming": "false", "dtype": "fp16"}
    assert "architectures" in str(spec.origin["parameters[task]"])
    assert spec.batching == Batching()


def test_how_many_requests_share_a_call(tmp_path: Path) -> None:
    spec, said = read(
        tmp_path,
        T5,
        "option.rolling_batch=disable",
        "option.task=translation_en_to_de",
        "batch_size=8",
        "option.max_batch_delay=50",
    )
    assert spec is not None
    assert said == ()
    assert spec.batching == Batching(False, 8, True)
    assert isinstance(spec.scheduling, Dynamic)
    assert spec.scheduling.max_delay == 0.05
    assert spec.parameters["task"] == "translation_en_to_de"
    assert spec.origin["parameters[task]"].key == "option.task"


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        ((), "hf"),
        (("option.rolling_batch=auto",), "hf"),
        (("option.rolling_batch=disable",), "hf-tasks"),
        (("batch_size=4",), "hf-tasks"),
        (("option.rolling_batch=disable", "option.async_mode=true"), "hf"),
        (("option.rolling_batch=disable", "option.task=text-generation"), "hf-tasks"),
        (("option.task=text-embedding",), "hf-tasks"),
        (("option.task=auto",), "hf"),
    ],
)
def test_a_causal_model_is_batched_statically_where_that_is_asked(
    tmp_path: Path, settings: tuple[str, ...], engine: str
) -> None:
    spec, _ = read(tmp_path, LLAMA, *settings)
    assert spec is not None
    assert spec.engine == engine


@pytest.mark.parametrize("word", ["true", "huggingface", "TRUE"])
def test_answers_leave_in_pieces(tmp_path: Path, word: str) -> None:
    spec, said = read(tmp_path, T5, f"option.enable_streaming={word}")
    assert spec is not None
    assert said == ()
    assert spec.streams
    assert spec.parameters["enable_streaming"] == word.lower()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("option.task=paint",), "one of text2text-generation, summarization"),
        (("option.task=fill-mask",), "a class whose name ends in ForMaskedLM"),
        (("option.task=fill-mask",), "Set option.task to text2text-generation"),
        (("option.enable_streaming=perhaps",), "false, true or huggingface"),
        (("option.enable_streaming=true", "batch_size=2"), "a batch_size of 1"),
        (("option.dtype=int8",), "auto, fp32, fp16 or bf16"),
        (("option.quantize=bitsandbytes8",), "A model that is batched statically is not quantised"),
        (("batch_size=1000",), "at most 999"),
    ],
)
def test_what_is_refused(tmp_path: Path, settings: tuple[str, ...], words: str) -> None:
    spec, said = read(tmp_path, T5, *settings)
    assert spec is None
    assert any(words in str(one) for one in said), said


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("option.rolling_batch=lmi-dist", "batched statically"),
        ("option.max_rolling_batch_size=4", "batched statically"),
        ("option.output_formatter=jsonlines", "one form of answer"),
        ("option.max_model_len=64", "as many tokens as the model knows"),
    ],
)
def test_what_has_no_effect_is_told(tmp_path: Path, setting: str, words: str) -> None:
    spec, said = read(tmp_path, T5, setting)
    assert spec is not None
    assert any(words in str(one) for one in said), said


def test_streaming_is_of_tasks_that_write(tmp_path: Path) -> None:
    config = {"architectures": ["BertForMaskedLM"]}
    spec, said = read(tmp_path, config, "option.enable_streaming=true", "option.max_input_len=64")
    assert spec is not None
    assert not spec.streams
    assert spec.parameters == {"task": "fill-mask", "max_input_tokens": "64"}
    assert "an answer to fill-mask is there at once" in str(said[0])


def test_a_class_that_looks_at_pictures_is_refused(tmp_path: Path) -> None:
    spec, said = read(
        tmp_path, {"architectures": ["LlavaForConditionalGeneration"], "vision_config": {}}, "batch_size=2"
    )
    assert spec is None
    assert "more than texts" in str(said[0])
