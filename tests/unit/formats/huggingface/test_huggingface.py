"""Hugging Face folders, GGUF files and stores of them: what is claimed by names, read, and refused with the way out."""

import json
import os
from pathlib import Path

import pytest
from tests.harness.llm_folders import EMPTY_WEIGHTS, GGUF, LLAMA, checkpoint, write

from trivium.catalogue import CATALOGUE
from trivium.formats.checkpoint.checkpoint import read_checkpoint
from trivium.formats.huggingface.repository import FORMAT
from trivium.types.datatype import DataType
from trivium.types.spec import Defaults, Device, ModelFacts, ModelSpec, TensorSpec


def claimed_by(path: Path) -> str:
    return next((form.name for form in CATALOGUE.formats if form.claims(path)), "")


def specs(path: Path, **defaults: object) -> dict[str, ModelSpec]:
    reading = FORMAT.read(path, Defaults(**defaults))  # type: ignore[arg-type]
    assert reading.unreadable == ()
    return {spec.name: spec for spec in reading.specs}


def faults(path: Path, **defaults: object) -> list[str]:
    reading = FORMAT.read(path, Defaults(**defaults))  # type: ignore[arg-type]
    assert reading.specs == ()
    return [str(finding) for one in reading.unreadable for finding in one.findings]


def test_a_folder_is_read_with_the_place_of_each_value(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "tiny")
    assert claimed_by(folder) == "huggingface"
    spec = specs(folder, queue_items=7, gpus=2)["tiny"]
    assert (spec.version, spec.engine, spec.root, spec.entry) == ("1", "hf", folder, "config.json")
    assert (spec.streams, spec.parameters, spec.limits.queue_items) == (True, {}, 7)
    assert (spec.groups[0].device, spec.groups[0].device_ids) == (Device.GPU, (0, 1))
    assert spec.details == {
        "architecture": "LlamaForCausalLM",
        "trained_context": "2048",
        "stored_dtype": "bfloat16",
    }
    assert str(spec.origin["details[trained_context]"]) == f"{folder}/config.json:6 (max_position_embeddings)"


def test_a_gguf_file_alone_in_a_folder_and_among_others(tmp_path: Path) -> None:
    write(tmp_path / "tiny.Q4.GGUF", GGUF)
    file = tmp_path / "tiny.Q4.GGUF"
    assert claimed_by(file) == claimed_by(tmp_path) == "huggingface"
    spec = specs(file)["tiny.Q4"]
    assert (spec.root, spec.entry) == (tmp_path, file.name)
    assert spec.details == {"architecture": "llama", "trained_context": "512"}
    assert list(specs(tmp_path)) == [tmp_path.name]
    write(tmp_path / "other.gguf", GGUF)
    write(tmp_path / "mmproj-model.gguf", GGUF)
    assert set(specs(tmp_path)) == {"tiny.Q4", "other"}


def test_every_model_of_a_store_is_found(tmp_path: Path) -> None:
    checkpoint(tmp_path / "a")
    checkpoint(tmp_path / "b", LLAMA | {"architectures": ["BertForMultipleChoice"]})
    (tmp_path / "c").mkdir()
    write(tmp_path / "c" / "model.gguf", GGUF)
    write(tmp_path / "d.gguf", GGUF)
    (tmp_path / "notes").mkdir()
    (tmp_path / "README.md").touch()
    assert claimed_by(tmp_path) == "huggingface"
    reading = FORMAT.read(tmp_path, Defaults())
    assert {spec.name for spec in reading.specs} == {"a", "c", "d"}
    assert [one.name for one in reading.unreadable] == ["b"]


@pytest.mark.parametrize(
    "mark",
    ["serving.properties", "model.py", "model.onnx", "m.onnx", "m.pt", "m.py", "config.pbtxt", "MAR-INF"],
)
def test_a_folder_that_another_format_marks_is_left_to_it(tmp_path: Path, mark: str) -> None:
    folder = checkpoint(tmp_path / "store" / "m")
    assert FORMAT.claims(folder)
    (folder / mark).touch()
    assert not FORMAT.claims(folder)
    assert not FORMAT.claims(tmp_path / "store")


def test_a_folder_within_a_folder_does_not_make_it_another_formats(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").touch()
    assert claimed_by(folder) == "huggingface"


def test_what_holds_no_model_is_not_claimed(tmp_path: Path) -> None:
    write(tmp_path / "config.json", LLAMA)
    assert not FORMAT.claims(tmp_path)
    assert not FORMAT.claims(tmp_path / "absent")
    assert not FORMAT.claims(tmp_path / "config.json")
    assert not FORMAT.claims(Path("\0"))


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", LLAMA, "tokenizer.json", "model.safetensors")
    write(folder / "adapter_model.safetensors", EMPTY_WEIGHTS)
    weights, tokenizer = faults(folder)
    assert "weights under other names: adapter_model.safetensors" in weights
    assert "no tokenizer" in tokenizer


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "tf_model.h5", "consolidated.00.pth"]
)
def test_pickled_weights_are_refused_with_the_way_to_convert_them(tmp_path: Path, name: str) -> None:
    folder = checkpoint(tmp_path / "m", LLAMA, "model.safetensors")
    (folder / name).touch()
    assert claimed_by(folder) == "huggingface"
    (fault,) = faults(folder)
    assert name in fault
    assert "save_pretrained" in fault
    write(folder / "model.safetensors", EMPTY_WEIGHTS)
    assert specs(folder)


@pytest.mark.parametrize("file", ["config", "tokenizer_config"])
def test_code_of_the_folder_runs_only_if_it_is_trusted(tmp_path: Path, file: str) -> None:
    code = {"auto_map": {"AutoModelForCausalLM": "modeling.X"}}
    folder = checkpoint(
        tmp_path / "m",
        {**LLAMA, **code} if file == "config" else LLAMA,
        **{f"{file}__json": {**LLAMA, **code}},
    )
    (fault,) = faults(folder)
    assert "modeling.X" in fault
    assert "--engine-parameters hf.trust_remote_code=true" in fault
    assert faults(folder, engine_parameters={"hf.trust_remote_code": "false"})
    trusted = specs(folder, engine_parameters={"hf.trust_remote_code": "true", "onnx.x": "1"})["m"]
    assert trusted.parameters == {"trust_remote_code": "true"}
    assert "--engine-parameters" in str(trusted.origin["parameters[trust_remote_code]"])


def test_code_on_a_hub_is_refused_even_if_it_is_trusted(tmp_path: Path) -> None:
    config = {**LLAMA, "auto_map": {"AutoModel": "org/repo--modeling.X"}}
    (fault,) = faults(checkpoint(tmp_path / "m", config), engine_parameters={"hf.trust_remote_code": "1"})
    assert "which is not fetched" in fault


def test_an_index_and_its_pieces(tmp_path: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    folder = checkpoint(tmp_path / "m", LLAMA, "model.safetensors", model__safetensors__index__json=index)
    assert "model-1.safetensors, model-2.safetensors, which the folder does not have" in faults(folder)[0]
    for number in (1, 2):
        write(folder / f"model-{number}.safetensors", EMPTY_WEIGHTS)
    assert specs(folder)
    write(folder / "model-2.safetensors", EMPTY_WEIGHTS[:-1])
    (fault,) = faults(folder)
    assert "model-2.safetensors" in fault
    assert "cut off" in fault


@pytest.mark.parametrize("data", [b"", b"nothing", GGUF[:30], b"GGUF"])
def test_a_gguf_that_is_none_fails_by_itself(tmp_path: Path, data: bytes) -> None:
    write(tmp_path / "bad.gguf", data)
    write(tmp_path / "good.gguf", GGUF)
    reading = FORMAT.read(tmp_path, Defaults())
    assert [spec.name for spec in reading.specs] == ["good"]
    assert [one.name for one in reading.unreadable] == ["bad"]


def test_a_piece_of_a_gguf_is_refused_with_the_way_to_join_it(tmp_path: Path) -> None:
    write(tmp_path / "m-00001-of-00002.gguf", GGUF)
    assert "llama-gguf-split --merge" in faults(tmp_path / "m-00001-of-00002.gguf")[0]


@pytest.mark.parametrize("content", [b"{", b"[1]", json.dumps(LLAMA)[:-1].encode(), b"\0" * 40])
def test_a_hostile_config_is_a_finding(tmp_path: Path, content: bytes) -> None:
    (fault, *_) = faults(checkpoint(tmp_path / "m", content))
    assert "config.json" in fault


def test_what_is_no_file_is_a_finding(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", LLAMA, "model.safetensors", "config.json")
    os.mkfifo(folder / "model.safetensors")
    os.mkfifo(folder / "config.json")
    (fault, *_) = faults(folder)
    assert "a named pipe" in fault


def test_inputs_and_outputs_are_the_engines(tmp_path: Path) -> None:
    spec = specs(checkpoint(tmp_path / "m"))["m"]
    text = TensorSpec("text_input", DataType.BYTES, (1,))
    done = FORMAT.finish(spec, ModelFacts((text,), (), False))
    assert done.inputs == (text,)
    assert "inputs[0].name" in done.origin


def test_what_is_near_to_a_model_is_told_what_it_needs(tmp_path: Path) -> None:
    write(tmp_path / "config.json", LLAMA)
    assert FORMAT.hint(tmp_path) == "It has config.json and no weights: add model.safetensors."
    (tmp_path / "model.py").touch()
    assert FORMAT.hint(tmp_path) == ""
    cached = checkpoint(tmp_path / "models--a--b" / "snapshots" / "0123")
    assert FORMAT.hint(tmp_path / "models--a--b") == f"This is an entry of a hub's cache: serve {cached}."
    assert not FORMAT.claims(tmp_path / "models--a--b")
    assert [FORMAT.hint(path) for path in (tmp_path / "absent", Path("\0"), cached.parent)] == ["", "", ""]


def test_an_adapter_is_told_from_a_model_with_the_way_to_one(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(
        '{"base_model_name_or_path": "ORG/base", "peft_type": "LORA"}'
    )
    (tmp_path / "adapter_model.safetensors").touch()
    words = FORMAT.hint(tmp_path)
    assert f"{tmp_path / 'adapter_config.json'}: an adapter of 'ORG/base' (LoRA)" in words
    assert "as adapters/NAME in the base's folder" in words
    assert "merge_and_unload()" in words
    (fault,) = read_checkpoint(tmp_path, False, "").findings
    assert str(fault) == words
    (tmp_path / "adapter_config.json").write_text("[")
    assert "an adapter (LoRA)" in FORMAT.hint(tmp_path)


@pytest.mark.parametrize(
    ("architecture", "files", "task"),
    [
        ("T5ForConditionalGeneration", {}, "text2text-generation"),
        ("BertForTokenClassification", {}, "token-classification"),
        ("BertModel", {}, "feature-extraction"),
        ("BertModel", {"modules__json": []}, "text-embedding"),
    ],
)
def test_a_model_of_texts_has_the_task_of_its_class(
    tmp_path: Path, architecture: str, files: dict[str, object], task: str
) -> None:
    folder = checkpoint(tmp_path / "m", LLAMA | {"architectures": [architecture]}, **files)
    (spec,) = FORMAT.read(folder, Defaults()).specs
    assert (spec.engine, spec.parameters) == ("hf-tasks", {"task": task})
    assert spec.batching.merge
    assert "config.json" in str(spec.origin["parameters[task]"])


def test_a_task_of_the_command_line_goes_before(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    asked = Defaults(
        engine_parameters={"hf-tasks.task": "text-generation", "hf-tasks.enable_streaming": "true"}
    )
    (spec,) = FORMAT.read(folder, asked).specs
    assert (spec.engine, spec.parameters["task"], spec.streams) == ("hf-tasks", "text-generation", True)
    (broken,) = FORMAT.read(folder, Defaults(engine_parameters={"hf-tasks.task": "fill-mask"})).unreadable
    assert "--engine-parameters hf-tasks.task to text-generation" in str(broken.findings[0])


def test_adapters_lie_in_the_models_folder_or_are_named(tmp_path: Path) -> None:
    model = checkpoint(tmp_path / "m")
    assert specs(model)["m"].functions == ()
    for name in ("a", "b", "empty"):
        (model / "adapters" / name).mkdir(parents=True)
    for name in ("a", "b"):
        (model / "adapters" / name / "adapter_config.json").write_text("{}")
    spec = specs(model)["m"]
    assert spec.functions == ("register_adapter", "update_adapter", "unregister_adapter")
    assert {call.topic: call.properties["src"] for call in spec.standing} == {
        "a": str(model / "adapters" / "a"),
        "b": str(model / "adapters" / "b"),
    }
    asked = {"hf.adapters": "b=/elsewhere; c=adapters/empty"}
    named = specs(model, engine_parameters=asked)["m"]
    assert {call.topic: call.properties["src"] for call in named.standing} == {
        "a": str(model / "adapters" / "a"),
        "b": "/elsewhere",
        "c": "adapters/empty",
    }
    off = specs(model, engine_parameters={"hf.enable_lora": "false"})["m"]
    assert (off.functions, off.standing) == ((), ())
    on = specs(checkpoint(tmp_path / "n"), engine_parameters={"hf.enable_lora": "true"})["n"]
    assert (on.functions, on.standing) == (spec.functions, ())


@pytest.mark.parametrize(
    ("asked", "has_vllm", "engine", "is_said"),
    [
        ("openvino-llm", False, "hf", True),
        ("hf", False, "hf", False),
        ("vllm", True, "vllm", False),
        ("", False, "hf", False),
    ],
)
def test_an_engine_that_was_named_and_does_not_open_the_weights_is_reported(
    tmp_path: Path, asked: str, has_vllm: bool, engine: str, is_said: bool
) -> None:
    spec = specs(checkpoint(tmp_path / "tiny"), text_engine=asked, has_vllm=has_vllm)["tiny"]
    assert spec.engine == engine
    assert [one.found for one in spec.reports if "has no effect" in one.found] == (
        ["--text-engine has no effect here, and hf serves the model: the engine openvino-llm does not open "
         "safetensors; vLLM is not installed"] if is_said else []
    )  # fmt: skip
