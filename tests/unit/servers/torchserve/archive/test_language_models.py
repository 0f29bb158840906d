"""The handler llm_api: its settings in the environment and in model-config.yaml, and what is refused."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.harness.llm_folders import LLAMA, checkpoint

from trivium.servers.torchserve.archive.repository import TorchServeFormat, made
from trivium.servers.torchserve.words import llm_api_file
from trivium.servers.torchserve.words.language_model import NAMES, OURS
from trivium.servers.torchserve.words.layers import ServerRules
from trivium.types.findings import Finding
from trivium.types.spec import Defaults, Device, ModelSpec


def folder(path: Path, config: str = "", **model: object) -> Path:
    told = {"modelName": "chat", "modelVersion": "2.0", "handler": "llm_api", **model}
    if config:
        told["configFile"] = "model-config.yaml"
    (path / "MAR-INF").mkdir(parents=True)
    (path / "MAR-INF" / "MANIFEST.json").write_text(
        json.dumps({"runtime": "python", "model": told}, indent=1)
    )
    if config:
        (path / "model-config.yaml").write_text(config)
    return path


def read(
    path: Path, variables: Mapping[str, str] | None = None, **defaults: int
) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    form = made(variables or {})
    assert form.claims(path)
    reading = form.read(path, Defaults(**defaults))  # type: ignore[arg-type]
    if reading.specs:
        (spec,) = reading.specs
        return spec, spec.reports
    (broken,) = reading.unreadable
    return None, broken.findings


def test_the_environment_sets_a_model_up(tmp_path: Path) -> None:
    weights = checkpoint(tmp_path / "weights")
    variables = {
        "MODEL_NAME": "chat",
        "MODEL_PATH": str(weights),
        "DEVICE_MAP": "auto",
        "MAX_INPUT_TOKENS": "100",
        "MAX_NEW_TOKENS": "28",
        "DTYPE": "bfloat16",
        "QUANTIZATION": "None",
        "END_OF_STREAM_TOKEN": "<end>",
        "SLOTS": "9",
    }
    assert set(NAMES) <= variables.keys()
    spec, said = read(folder(tmp_path / "chat"), variables)
    assert spec is not None, said
    assert said == ()
    assert (spec.name, spec.version, spec.engine, spec.entry, spec.root) == (
        "chat",
        "2.0",
        "hf",
        "config.json",
        weights,
    )
    assert spec.parameters == {
        "max_input_tokens": "100",
        "max_new_tokens": "28",
        "max_context": "128",
        "end_of_stream_token": "<end>",
        "dtype": "bf16",
    }
    assert str(spec.origin["parameters[max_new_tokens]"]) == "the environment (MAX_NEW_TOKENS)"
    assert (spec.handler, spec.streams, spec.limits.run_deadline) == (None, True, 120.0)
    assert spec.details["architecture"] == "LlamaForCausalLM"


def test_a_models_own_file_goes_before_the_environment(tmp_path: Path) -> None:
    path = folder(
        tmp_path / "chat",
        "batchSize: 2\nmaxBatchDelay: 1000\nresponseTimeout: 600\n"
        "handler:\n  max_new_tokens: 7\n  SLOTS: 3\n  threads: 1\n",
    )
    checkpoint(path)
    spec, said = read(path, {"MAX_NEW_TOKENS": "9", "MAX_INPUT_TOKENS": "5"})
    assert spec is not None, said
    assert spec.parameters == {
        "slots": "3",
        "threads": "1",
        "max_input_tokens": "5",
        "max_new_tokens": "7",
        "max_context": "12",
        "end_of_stream_token": "<|endoftext|>",
    }
    assert str(spec.origin["parameters[max_new_tokens]"]).endswith("yaml:4 (handler.max_new_tokens)")
    assert spec.limits.run_deadline == 600.0
    (notice,) = said
    assert (notice.key, "at the next step" in notice.found) == ("maxBatchDelay", True)


def test_defaults_are_those_of_the_llm_api_as_far_as_the_model_goes(tmp_path: Path) -> None:
    path = folder(tmp_path / "chat", "batchSize: 4\n")
    checkpoint(path, {**LLAMA, "max_position_embeddings": 4096})
    spec, said = read(path)
    assert spec is not None, said
    assert spec.parameters == {
        "slots": "4",
        "max_input_tokens": "2048",
        "max_new_tokens": "2048",
        "end_of_stream_token": "<|endoftext|>",
    }
    assert str(spec.origin["parameters[slots]"]).endswith("yaml:1 (batchSize)")


def test_a_file_of_that_name_is_a_handler_as_any_other(tmp_path: Path) -> None:
    path = folder(tmp_path / "chat")
    (path / "llm_api.py").write_text("def handle(data, context):\n    return data\n")
    spec, said = read(path)
    assert spec is not None, said
    assert spec.engine == "python-torchserve"


def test_the_file_that_is_printed_for_the_archiver_stands_for_ours(tmp_path: Path) -> None:
    path = checkpoint(folder(tmp_path / "chat", handler="llm_api.py"))
    (path / "llm_api.py").write_text(llm_api_file.TEXT)
    spec, said = read(path)
    assert spec is not None, said
    assert spec.engine != "python-torchserve"
    assert spec.parameters["end_of_stream_token"] == "<|endoftext|>"


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"QUANTIZATION": "8bit"}, "QUANTIZATION=8bit needs CUDA and bitsandbytes"),
        ({"QUANTIZATION": "4bit"}, "QUANTIZATION=4bit needs CUDA and bitsandbytes"),
        ({"DTYPE": "int8"}, "expected bfloat16, float16, float32 or auto"),
        ({"DEVICE_MAP": "balanced"}, "expected auto, cpu, cuda, cuda:0"),
        ({"DEVICE_MAP": "cuda"}, "this server sees no GPU"),
        ({"MAX_NEW_TOKENS": "many"}, "expected a number from 1 to"),
        ({"MAX_INPUT_TOKENS": "0"}, "expected a number from 1 to"),
        ({"MODEL_PATH": "org/name"}, "an id of the Hugging Face hub is not fetched"),
        ({"MODEL_PATH": "s3://b/x"}, "where there is no folder"),
        ({"MODEL_PATH": "\0"}, "where there is no folder"),
    ],
)
def test_what_cannot_be_names_the_variable(tmp_path: Path, variables: dict[str, str], words: str) -> None:
    path = checkpoint(folder(tmp_path / "chat"))
    spec, (fault,) = read(path, variables)
    assert spec is None
    assert words in str(fault)
    assert (fault.file, fault.key) == ("the environment", next(iter(variables)))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("handler:\n  max_new_tokns: 3\n", "Did you mean max_new_tokens?"),
        ("handler:\n  vllm_engine_config:\n    max_num_seqs: 16\n", "Name the handler vllm_handler"),
        ("handler:\n  adapters:\n    a: b\n", "Name the handler vllm_handler"),
        ("handler:\n  zzz: 3\n", "MODEL_PATH"),
        ("handler: [1]\n", "a mapping of settings"),
        ("handler:\n  slots: many\n", "expected a number"),
    ],
)
def test_what_cannot_be_names_the_file(tmp_path: Path, config: str, words: str) -> None:
    spec, (fault,) = read(checkpoint(folder(tmp_path / "chat", config)))
    assert spec is None
    assert words in str(fault)
    assert fault.line == 1


def test_a_name_in_the_environment_that_is_another_models_is_reported(tmp_path: Path) -> None:
    spec, (said,) = read(checkpoint(folder(tmp_path / "chat")), {"MODEL_NAME": "other"})
    assert spec is not None
    assert "the manifest names the model chat" in said.found


def test_an_envelope_of_the_server_is_said_to_have_no_effect(tmp_path: Path) -> None:
    form = TorchServeFormat(ServerRules(envelope="json"), {})
    (spec,) = form.read(checkpoint(folder(tmp_path / "chat")), Defaults()).specs
    assert ["service_envelope=json has no effect" in str(report) for report in spec.reports] == [True]


@pytest.mark.parametrize(
    ("word", "device", "ids"),
    [
        ("auto", Device.GPU, (0, 1)),
        ("cpu", Device.CPU, ()),
        ("cuda", Device.GPU, (0, 1)),
        ("cuda:0", Device.GPU, (0,)),
    ],
)
def test_the_device(tmp_path: Path, word: str, device: Device, ids: tuple[int, ...]) -> None:
    spec, said = read(checkpoint(folder(tmp_path / "chat")), {"DEVICE_MAP": word}, gpus=2)
    assert spec is not None, said
    assert (spec.groups[0].device, spec.groups[0].device_ids) == (device, ids)


def test_code_of_the_folder_is_trusted_by_the_file(tmp_path: Path) -> None:
    config = {**LLAMA, "auto_map": {"AutoModel": "m.M"}}
    spec, (fault,) = read(checkpoint(folder(tmp_path / "a"), config))
    assert spec is None
    assert "handler.trust_remote_code: true" in str(fault)
    spec, said = read(
        checkpoint(
            folder(
                tmp_path / "b", "handler:\n  trust_remote_code: true\n  logits_processors: even=own.py:Even\n"
            ),
            config,
        )
    )
    assert spec is not None, said
    assert spec.parameters["trust_remote_code"] == "true"
    assert spec.parameters["logits_processors"] == "even=own.py:Even"


def test_the_manual_has_every_setting() -> None:
    page = (Path(__file__).parents[5] / "docs" / "torchserve.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in page] == []
    assert [name for name in OURS if f"`{name.lower()}`" not in page] == []


# -- vllm_handler ------------------------------------------------------------------------------------------

LLAMA3 = """\
minWorkers: 1
maxWorkers: 1
batchSize: 1
maxBatchDelay: 100
startupTimeout: 1200
deviceType: "cpu"
asyncCommunication: true

handler:
    model_path: "weights"
    vllm_engine_config:
        max_num_seqs: 16
        max_model_len: 25
        dtype: half
        gpu_memory_utilization: 0.5
        max_num_seq: 3
        tensor_parallel_size: 1
        served_model_name:
            - "meta-llama/Meta-Llama-3.1-8B"
            - "llama3-8b"
"""


def vllm(path: Path, config: str) -> Path:
    made = folder(path, config, handler="vllm_handler")
    checkpoint(made / "weights")
    return made


def test_a_model_of_vllm_is_served_by_our_engine(tmp_path: Path) -> None:
    spec, said = read(vllm(tmp_path / "chat", LLAMA3))
    assert spec is not None, said
    assert (spec.engine, spec.entry, spec.root) == ("hf", "config.json", tmp_path / "chat" / "weights")
    assert spec.parameters == {"openai_paths": "true", "slots": "16", "max_context": "25", "dtype": "fp16"}
    assert spec.aliases == ("meta-llama/Meta-Llama-3.1-8B", "llama3-8b")
    assert str(spec.origin["parameters[slots]"]).endswith("(handler.vllm_engine_config.max_num_seqs)")
    notes = {one.key: str(one) for one in said}
    assert "it is about vLLM's own engine" in notes["handler.vllm_engine_config.gpu_memory_utilization"]
    assert "Did you mean max_num_seqs?" in notes["handler.vllm_engine_config.max_num_seq"]
    assert not any("asyncCommunication" in text for text in notes.values())


@pytest.mark.parametrize(
    ("config", "key", "words"),
    [
        ("handler:\n  model_path: weights\n  adapters:\n    a: b\n", "adapters", "Merge the adapter"),
        (
            "handler:\n  vllm_engine_config:\n    model: weights\n    enable_lora: true\n",
            "vllm_engine_config.enable_lora",
            "Write false.",
        ),
        (
            "handler:\n  vllm_engine_config:\n    model: weights\n    quantization: awq\n",
            "vllm_engine_config.quantization",
            "as they are",
        ),
        (
            "handler:\n  vllm_engine_config:\n    model: weights\n    max_num_seqs: many\n",
            "vllm_engine_config.max_num_seqs",
            "a number from 1",
        ),
        (
            "handler:\n  vllm_engine_config: [1]\n  model_path: weights\n",
            "vllm_engine_config",
            "one argument",
        ),
        ("handler:\n  model_path: meta-llama/Llama\n", "model_path", "hub"),
    ],
)
def test_what_vllm_would_do_otherwise_is_refused(tmp_path: Path, config: str, key: str, words: str) -> None:
    spec, said = read(vllm(tmp_path / "chat", config))
    assert spec is None
    (fault,) = [one for one in said if one.severity.value == "error"]
    assert fault.key == f"handler.{key}"
    assert words in str(fault)


def test_what_means_nothing_is_no_word_worth(tmp_path: Path) -> None:
    config = (
        "handler:\n  model_path: weights\n  adapters: {}\n  vllm_engine_config:\n    enable_lora: false\n"
    )
    spec, said = read(vllm(tmp_path / "chat", config))
    assert spec is not None
    assert said == ()
    assert spec.aliases == ("weights",)
