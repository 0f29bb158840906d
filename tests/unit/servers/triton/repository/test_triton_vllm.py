"""Models of Triton's vLLM backend: who serves them, their arguments, adapters and GPUs, and what is refused where.

Folders are staged after those that people have posted: the sample of the backend's README, a repository for eight GPUs
that names its devices, one with adapters.
"""

import json
from pathlib import Path

import pytest
from tests.harness.llm_folders import checkpoint
from tests.harness.vllm_models import STAND_IN

from trivium.engines.hf.vllm.arguments import engine_arguments
from trivium.engines.hf.vllm.installed import arguments_in
from trivium.servers.triton.repository.repository import FORMAT
from trivium.servers.triton.words.description import config_json
from trivium.types.datatype import DataType
from trivium.types.findings import Severity
from trivium.types.spec import Defaults, Device, ModelFacts, TensorSpec

WITH_VLLM = Defaults(has_vllm=True)
SAMPLE = 'backend: "vllm"\ninstance_group [{ count: 1 kind: KIND_MODEL }]\n'


@pytest.fixture(scope="module")
def forms():
    return arguments_in(STAND_IN / "vllm")


def staged(root: Path, config: str = SAMPLE, adapters: object = None, **arguments: object) -> Path:
    weights = checkpoint(root / "weights")
    folder = root / "m"
    (folder / "1").mkdir(parents=True)
    told = {"model": str(weights)} | arguments
    (folder / "1" / "model.json").write_text(json.dumps({k: v for k, v in told.items() if v != "left out"}))
    if adapters is not None:
        (folder / "1" / "multi_lora.json").write_text(json.dumps(adapters))
    (folder / "config.pbtxt").write_text(config)
    return folder


def read(folder: Path, defaults: Defaults = WITH_VLLM):
    assert FORMAT.claims(folder)
    found = FORMAT.read(folder, defaults)
    if found.specs:
        return found.specs[0], found.specs[0].reports
    return None, found.unreadable[0].findings


def served(folder: Path, defaults: Defaults = WITH_VLLM):
    spec, findings = read(folder, defaults)
    assert spec is not None, findings
    return spec


def test_the_sample_of_the_readme_is_served_by_vllm(tmp_path, forms):
    more = {"disable_log_requests": True, "gpu_memory_utilization": 0.5, "enforce_eager": True}
    spec = served(staged(tmp_path, **more))
    assert (spec.engine, spec.root, spec.entry) == ("vllm", tmp_path / "weights", "config.json")
    assert engine_arguments(spec, forms) == {"gpu_memory_utilization": 0.5, "enforce_eager": True}
    assert spec.streams
    assert not spec.reports
    assert "model.json (enforce_eager)" in str(spec.origin["parameters[enforce_eager]"])


def test_without_vllm_it_is_served_by_the_engine_of_our_own_and_all_is_said(tmp_path):
    more = {"max_model_len": 300, "dtype": "half", "gpu_memory_utilization": 0.5, "max_num_seqs": 4}
    spec = served(staged(tmp_path, **more), Defaults())
    assert spec.engine == "hf"
    assert spec.parameters == {"max_context": "300", "dtype": "fp16", "slots": "4"}
    said = [one.found for one in spec.reports]
    assert "engine hf serves the model: vLLM is not installed" in said
    assert "gpu_memory_utilization has no effect with the engine hf" in said
    assert len(said) == 2


def test_what_would_make_other_answers_needs_vllm(tmp_path):
    spec, findings = read(staged(tmp_path, quantization="awq"), Defaults())
    assert spec is None
    (fault,) = [one for one in findings if one.severity is Severity.ERROR]
    assert "quantization 'awq' would make other answers" in str(fault)
    assert "Install vLLM" in str(fault)
    assert served(staged(tmp_path / "set", quantization=None), Defaults()).engine == "hf"


def test_a_path_may_begin_at_the_versions_folder(tmp_path):
    assert served(staged(tmp_path, model="../../weights")).root.resolve() == tmp_path / "weights"


def test_arguments_of_every_form(tmp_path, forms):
    more = {
        "tensor_parallel_size": 2,
        "hf_overrides": {"rope_theta": 5},
        "tokenizer_mode": "auto",
        "swap_space": 4,
    }
    spec = served(staged(tmp_path, **more))
    assert engine_arguments(spec, forms) == {"tensor_parallel_size": 2, "hf_overrides": {"rope_theta": 5}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": "left out"}, "model: no model"),
        ({"model": 5}, "the model '5'"),
        ({"model": "facebook/opt-125m"}, "hf download facebook/opt-125m"),
        ({"model": "/no/such/folder"}, "there is no such folder"),
        ({"enable_lora": True}, "multi_lora.json"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path, arguments, words):
    spec, findings = read(staged(tmp_path, **arguments))
    assert spec is None
    assert any(words in str(one) for one in findings), findings


@pytest.mark.parametrize("content", ["{", "[]", '"model"', "\xff", "{" * 2000, '{"model": "a\\u0000b"}', ""])
def test_a_damaged_file_of_arguments_is_refused(tmp_path, content):
    folder = staged(tmp_path)
    (folder / "1" / "model.json").write_bytes(content.encode("latin-1"))
    spec, findings = read(folder)
    assert spec is None
    assert "model.json" in str(findings[0])


def test_adapters_are_there_from_the_start(tmp_path):
    spec = served(staged(tmp_path, adapters={"eng": "/loras/eng", "own": "own"}, enable_lora="true"))
    assert [(one.topic, one.properties["src"]) for one in spec.standing] == [
        ("eng", "/loras/eng"),
        ("own", str(tmp_path / "m" / "1" / "own")),
    ]
    assert spec.functions
    assert "enable_lora" not in spec.parameters
    spec, findings = read(staged(tmp_path / "bad", adapters={"eng": 5}, enable_lora=True))
    assert spec is None
    assert "'eng' is no path" in str(findings)


DEVICES = SAMPLE + 'parameters { key: "GPU_DEVICE_IDS" value { string_value: "%s" } }\n'


@pytest.mark.parametrize(
    ("config", "size", "gpus", "ids", "span"),
    [
        (SAMPLE, 1, 0, (), 1),
        (SAMPLE, 1, 4, (0,), 1),
        (SAMPLE, 2, 4, (0, 1), 2),
        (DEVICES % "2,3", 2, 4, (2, 3), 2),
        ('backend: "vllm"\n', 1, 2, (0, 1), 1),
    ],
)
def test_instances_have_the_gpus_that_they_need(tmp_path, config, size, gpus, ids, span):
    spec = served(staged(tmp_path, config, tensor_parallel_size=size), Defaults(has_vllm=True, gpus=gpus))
    (group,) = spec.groups
    assert (group.device, group.device_ids, group.span) == (Device.GPU if gpus else Device.CPU, ids, span)


@pytest.mark.parametrize(
    ("config", "size", "words"),
    [
        (DEVICES % "0,x", 2, "GPU_DEVICE_IDS '0,x'"),
        (DEVICES % "0,0", 2, "2 different GPUs of 4"),
        (DEVICES % "0,9", 2, "2 different GPUs of 4"),
        (DEVICES % "0", 2, "Name as many as tensor_parallel_size times"),
        ('backend: "vllm"\ninstance_group [{ kind: KIND_GPU }]\n', 2, "Write kind: KIND_MODEL"),
    ],
)
def test_gpus_that_cannot_be_are_refused(tmp_path, config, size, words):
    spec, findings = read(
        staged(tmp_path, config, tensor_parallel_size=size), Defaults(has_vllm=True, gpus=4)
    )
    assert spec is None
    assert any(words in str(one) for one in findings), findings


def test_its_configuration_may_say_what_the_original_takes(tmp_path):
    config = SAMPLE + (
        "max_batch_size: 4\nmodel_transaction_policy { decoupled: true }\n"
        'parameters { key: "REPORT_CUSTOM_METRICS" value { string_value: "yes" } }\n'
        'input [{ name: "text_input" data_type: TYPE_STRING dims: [ 1 ] }]\n'
        'output [{ name: "text_output" data_type: TYPE_STRING dims: [ -1 ] }]\n'
    )
    spec = served(staged(tmp_path, config))
    assert [one.key for one in spec.reports] == ["max_batch_size"]
    facts = ModelFacts(
        (TensorSpec("text_input", DataType.BYTES, (1,)), TensorSpec("stream", DataType.BOOL, (1,))),
        (TensorSpec("text_output", DataType.BYTES, (-1,)),),
        False,
    )
    finished = FORMAT.finish(spec, facts)
    assert finished.inputs == facts.inputs
    told = json.loads(config_json(finished))
    assert [one["name"] for one in told["input"]] == ["text_input", "stream"]
    assert told["model_transaction_policy"] == {"decoupled": True}
    assert (told["backend"], told["max_batch_size"]) == ("vllm", 0)


def test_a_model_json_alone_makes_no_model_of_it(tmp_path):
    folder = staged(tmp_path)
    (folder / "config.pbtxt").write_text("")
    spec, findings = read(folder)
    assert spec is None
    assert "neither backend nor platform" in str(findings)


@pytest.mark.parametrize("defaults", [WITH_VLLM, Defaults()])
def test_weights_of_openvino_are_their_engine_s_whatever_is_installed(tmp_path, defaults):
    folder = staged(tmp_path)
    weights = tmp_path / "weights"
    for one in weights.glob("*.safetensors*"):
        one.unlink()
    (weights / "openvino_model.xml").write_text("<net/>")
    (weights / "openvino_model.bin").write_bytes(b"")
    spec = served(folder, defaults)
    assert (spec.engine, spec.entry) == ("openvino-llm", "openvino_model.xml")
