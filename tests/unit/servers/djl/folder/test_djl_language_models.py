"""DJL folders of language models: which folders are one, each option of LMI's table, and where its value goes."""

from pathlib import Path
from typing import Any

import pytest
from tests.harness.djl_folders import HANDLER, make
from tests.harness.llm_folders import EMPTY_WEIGHTS, GGUF, LLAMA, checkpoint, write

from trivium.catalogue import CATALOGUE
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.servers.djl.words.names import OPTION
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding
from trivium.types.sources import SourceSetting
from trivium.types.spec import Batching, Defaults, Device, Dynamic, ModelSpec, Origin

CHAT = ("option.rolling_batch=auto", "option.model_id=weights")


def folder(tmp_path: Path, *settings: str, **files: str) -> Path:
    made = make(tmp_path, "m", *settings, **files)
    checkpoint(made / "weights")
    return made


def read(path: Path, **defaults: Any) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    reading = DjlFormat().read(path, Defaults(**defaults))
    if reading.specs:
        (spec,) = reading.specs
        return spec, spec.reports
    (broken,) = reading.unreadable
    return None, broken.findings


def of(tmp_path: Path, *settings: str, **defaults: int) -> tuple[ModelSpec | None, list[str]]:
    """Read a chat with these settings; return the spec, and findings but for what is said of every such model."""
    spec, findings = read(folder(tmp_path, *CHAT, *settings), **defaults)
    return spec, [f"{one.severity.value}: {one}" for one in findings]


def test_a_folder_is_read_with_the_line_of_each_value(tmp_path: Path) -> None:
    spec, said = of(
        tmp_path,
        "option.max_rolling_batch_size=8",
        "option.max_rolling_batch_prefill_tokens=1088",
        "option.max_model_len=1024",
        "option.dtype=bfloat16",
        "option.trust_remote_code=true",
        "option.logits_processors=even=own.py:Even;odd=own.py:Odd",
        "option.output_formatter=jsonlines",
        "option.tgi_compat=true",
    )
    assert spec is not None
    assert said == []
    assert (spec.name, spec.engine, spec.entry) == ("m", "hf", "config.json")
    assert spec.root == tmp_path / "m" / "weights"
    assert spec.parameters == {
        "slots": "8",
        "prefill_chunk": "1088",
        "max_context": "1024",
        "dtype": "bf16",
        "trust_remote_code": "true",
        "logits_processors": "even=own.py:Even;odd=own.py:Odd",
        "tgi_compat": "true",
        "output_formatter": "jsonlines",
    }
    for name in spec.parameters:
        origin = spec.origin[f"parameters[{name}]"]
        assert (Path(origin.file).name, origin.key.startswith(OPTION), bool(origin.line)) == (
            "serving.properties",
            True,
            True,
        )
    assert (spec.batching, spec.dynamic.max_delay, spec.handler) == (Batching(), 0.0, None)
    assert isinstance(spec.scheduling, Dynamic)
    assert (spec.streams, spec.translator, len(spec.groups), spec.groups[0].maximum) == (True, None, 1, 1)
    assert spec.details["architecture"] == "LlamaForCausalLM"
    assert str(spec.origin["engine"]).endswith("(option.rolling_batch)")


@pytest.mark.parametrize(
    ("settings", "files", "engine"),
    [
        (["option.rolling_batch=auto"], {}, "hf"),
        (["option.model_id=weights"], {}, "hf"),
        (["engine=MPI", "option.rolling_batch=vllm"], {}, "hf"),
        (["engine=Python", "option.entryPoint=djl_python.huggingface"], {}, "hf"),
        (["option.entryPoint=djl_python.huggingface"], {"model_py": HANDLER}, "hf"),
        (["option.model_id=weights"], {"model_py": HANDLER}, "python-djl"),
        (["option.model_id=weights"], {"m_py": HANDLER}, "python-djl"),
        (["option.entryPoint=mine.py", "option.model_id=weights"], {"mine_py": HANDLER}, "python-djl"),
        (["option.dtype=fp32"], {}, "hf"),
        (["option.dtype=fp32"], {"model_onnx": ""}, "onnx"),
    ],
)
def test_which_folder_is_a_language_model(
    tmp_path: Path, settings: list[str], files: dict[str, str], engine: str
) -> None:
    spec, findings = read(checkpoint(folder(tmp_path, *settings, **files)))
    assert spec is not None, findings
    assert spec.engine == engine


def test_a_gguf_in_the_folder(tmp_path: Path) -> None:
    made = make(tmp_path, "m", "option.rolling_batch=auto")
    write(made / "other.gguf", GGUF)
    spec, _ = read(made)
    assert spec is not None
    assert (spec.entry, spec.root) == ("other.gguf", made)
    write(made / "m.gguf", GGUF)
    spec, _ = read(made)
    assert spec is not None
    assert spec.entry == "m.gguf"


def test_a_bare_folder_among_djls(tmp_path: Path) -> None:
    make(tmp_path, "handled", model_py=HANDLER)
    checkpoint(tmp_path / "bare")
    form = next(form for form in CATALOGUE.formats if form.claims(tmp_path))
    reading = form.read(tmp_path, Defaults())
    assert {spec.name: spec.engine for spec in reading.specs} == {"handled": "python-djl", "bare": "hf"}


@pytest.mark.parametrize(
    ("settings", "uri", "trusts"),
    [
        (["option.model_id=org/name"], "hf://org/name", False),
        (["option.model_id=org/name", "option.revision=v1"], "hf://org/name@v1", False),
        (["option.model_id=hf://org/name@v2", "option.revision=v1"], "hf://org/name@v2", False),
        (["option.model_id=org/name", "option.trust_remote_code=true"], "hf://org/name", True),
        (["option.model_id=s3://bucket/x"], "s3://bucket/x", False),
    ],
)
def test_a_model_id_is_what_was_fetched(tmp_path: Path, settings: list[str], uri: str, trusts: bool) -> None:
    weights, asked = checkpoint(tmp_path / "cache"), []

    def elsewhere(uri: str, with_code: bool) -> Path:
        asked.append((uri, with_code))
        return weights

    spec, findings = read(make(tmp_path, "m", "option.rolling_batch=auto", *settings), elsewhere=elsewhere)
    assert spec is not None, findings
    assert (spec.root, asked) == (weights, [(uri, trusts)])


def test_a_model_id_that_is_not_fetched_says_why(tmp_path: Path) -> None:
    def elsewhere(uri: str, with_code: bool) -> Path:
        raise ServeError(Code.FORBIDDEN, f"{uri} may not be fetched.")

    made = make(tmp_path, "m", "option.rolling_batch=auto", "option.model_id=org/name")
    spec, (finding,) = read(made, elsewhere=elsewhere)
    assert spec is None
    assert (finding.line, "hf://org/name may not be fetched." in finding.found) == (2, True)


def test_a_folder_goes_before_an_id_and_a_mistyped_path_asks_nobody(tmp_path: Path) -> None:
    def elsewhere(uri: str, with_code: bool) -> Path:
        raise AssertionError(uri)

    made = make(tmp_path, "m", "option.rolling_batch=auto", "option.model_id=org/name")
    checkpoint(made / "org" / "name")
    spec, findings = read(made, elsewhere=elsewhere)
    assert spec is not None, findings
    assert spec.root == made / "org" / "name"
    made = make(tmp_path, "n", "option.rolling_batch=auto", "option.model_id=org/nmae")
    checkpoint(made / "org" / "name")
    assert read(made, elsewhere=elsewhere)[0] is None


@pytest.mark.parametrize("key", ["option.model_id", "option.model_id "])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("gpt2", "an id of the Hugging Face hub"),
        ("org/name", "hf download org/name"),
        ("s3://bucket/x", "which is not fetched"),
        ("hf://org/x", "which is not fetched"),
        ("../other", "leads out of"),
        ("/absent/folder", "no folder"),
        ("a/b/c", "no folder"),
        ("x" * 5000, "where there is no folder"),
    ],
)
def test_a_model_id_that_is_no_folder(tmp_path: Path, key: str, value: str, words: str) -> None:
    spec, findings = read(make(tmp_path, "m", "option.rolling_batch=auto", f"{key}={value}"))
    assert spec is None
    assert any(words in str(one) for one in findings) or len(value) > 4000


@pytest.mark.parametrize(
    ("setting", "words", "is_served"),
    [
        ("option.rolling_batch=auto", "", True),
        (
            "option.rolling_batch=vllm",
            "the engine hf serves the model, on the CPU or one GPU, in place of vLLM",
            True,
        ),
        ("option.rolling_batch=trtllm", "in place of TensorRT-LLM", True),
        ("option.rolling_batch=scheduler", "was removed upstream in 0.33.0", True),
        ("option.rolling_batch=lmi-dist", "LMI-Dist was removed upstream in 0.33.0", True),
        ("option.rolling_batch=deepspeed", "DeepSpeed was removed upstream in 0.28.0", True),
        ("option.rolling_batch=", "in OpenAI's form, as DJL does since LMI 17", True),
        ("option.rolling_batch=disable", "", True),
        ("option.rolling_batch=vlm", "Did you mean vllm?", False),
        ("option.entryPoint=djl_python.tensorrt_llm", "in place of TensorRT-LLM", True),
        ("option.entryPoint=djl_python.deepspeed", "Write option.rolling_batch=auto in its place", True),
        ("option.entryPoint=djl_python.transformers_neuronx", "was removed upstream in 0.35.0", True),
        ("option.entryPoint=djl_python.huggingface", "", True),
    ],
)
def test_what_each_way_of_batching_means(tmp_path: Path, setting: str, words: str, is_served: bool) -> None:
    own = [line for line in CHAT if not line.startswith(setting.partition("=")[0])]
    spec, findings = read(folder(tmp_path, *own, setting))
    assert (spec is not None) is is_served
    texts = [str(one) for one in findings]
    assert any(words in text for text in texts) if words else texts == []
    if spec is not None:
        assert len(texts) <= 1


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        (["option.max_num_sequences=4"], "slots", "4"),
        (["option.max_num_seqs=4"], "slots", "4"),
        (["option.max_num_seqs=4", "option.max_rolling_batch_size=4"], "slots", "4"),
        (["option.max_num_batched_tokens=64"], "prefill_chunk", "64"),
        (["option.enable_prefix_caching=false"], "prefix_cache", "false"),
        (["option.enable_prefix_caching=True"], "prefix_cache", "true"),
        (["option.n_positions=128"], "max_context", "128"),
        (["option.max_tokens=1024"], "max_context", "1024"),
        (["option.max_input_len=100", "option.max_output_len=28"], "max_context", "128"),
        (["option.dtype=FP16"], "dtype", "fp16"),
        (["option.dtype=float32"], "dtype", "fp32"),
        (["option.dtype=auto"], "dtype", "auto"),
        (["option.output_formatter=SSE"], "output_formatter", "sse"),
        (["option.tgi_compat=false"], "tgi_compat", "false"),
    ],
)
def test_an_option_becomes_a_parameter(tmp_path: Path, settings: list[str], name: str, value: str) -> None:
    spec, said = of(tmp_path, *settings)
    assert (spec.parameters if spec else said) == {name: value}
    assert said == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["option.max_num_seqs=4", "option.max_rolling_batch_size=5"], "they mean the same"),
        (["option.max_tokens=4", "option.n_positions=5"], "they mean the same"),
        (["option.max_tokens=4", "option.max_input_len=4", "option.max_output_len=4"], "together are 8"),
        (["option.dtype=int8"], "expected auto, fp32, fp16 or bf16"),
        (["option.dtype=zzz"], "expected auto, fp32, fp16 or bf16"),
        (["option.output_formatter=mine"], "mine"),
        (["option.max_rolling_batch_size=many"], "Write digits alone"),
        (["batch_size=4"], "max_rolling_batch_size in its place"),
    ],
)
def test_what_cannot_be(tmp_path: Path, settings: list[str], words: str) -> None:
    spec, said = of(tmp_path, *settings)
    assert spec is None
    assert any(words in text for text in said), said


def test_all_gpus_are_one_where_there_is_one(tmp_path: Path) -> None:
    spec, said = of(tmp_path, "option.tensor_parallel_degree=max", gpus=1)
    assert spec is not None, said
    assert spec.groups[0].device is Device.GPU


@pytest.mark.parametrize("degree", ["max", "2"])
def test_several_gpus_are_reported_since_a_model_runs_on_one(tmp_path: Path, degree: str) -> None:
    spec, said = of(tmp_path, f"option.tensor_parallel_degree={degree}", gpus=2)
    assert spec is not None, said
    assert "runs on one device" in said[0]


def test_a_model_for_many_machines_is_refused(tmp_path: Path) -> None:
    assert "several machines" in of(tmp_path, "option.cluster_size=2")[1][0]


@pytest.mark.parametrize(
    ("settings", "is_async"),
    [
        ([], True),
        (["option.rolling_batch=auto"], False),
        (["option.rolling_batch=auto", "option.async_mode=true"], True),
        (["option.rolling_batch=vllm", "option.async_mode=true"], True),
        (["option.rolling_batch=disable", "option.async_mode=true"], True),
        (["option.async_mode=false"], False),
        (["option.entryPoint=djl_python.huggingface"], True),
        (["option.entryPoint=djl_python.tensorrt_llm"], False),
        (["option.entryPoint=djl_python.lmi_vllm.vllm_async_service"], True),
        (["option.entryPoint=djl_python.lmi_vllm.vllm_async_service", "option.rolling_batch=disable"], True),
        (["option.entryPoint=djl_python.lmi_trtllm.trtllm_async_service", "option.async_mode=true"], True),
    ],
)
def test_which_form_a_model_is_asked_in(tmp_path: Path, settings: list[str], is_async: bool) -> None:
    spec, findings = read(folder(tmp_path, "option.model_id=weights", *settings))
    assert spec is not None, findings
    assert spec.parameters == ({"async_mode": "true"} if is_async else {})
    assert len(findings) <= 1
    assert len(findings) == (settings != ["option.rolling_batch=auto"])


def test_a_model_speaks_of_itself_under_its_served_name(tmp_path: Path) -> None:
    spec, said = of(tmp_path, "option.served_model_name=mine")
    assert (spec.parameters if spec else said) == {"served_model_name": "mine"}


def test_half_of_a_context_is_reported(tmp_path: Path) -> None:
    spec, (said,) = of(tmp_path, "option.max_input_len=5")
    assert spec is not None
    assert "has no effect without option.max_output_len" in said


@pytest.mark.parametrize("key", ["option.zzz", "zzz", "option.max_modl_len"])
def test_a_key_that_nobody_knows_is_reported(tmp_path: Path, key: str) -> None:
    spec, (said,) = of(tmp_path, f"{key}=1")
    assert spec is not None
    assert "no option of language models" in said
    assert ("Did you mean option.max_model_len?" in said) is key.endswith("modl_len")


def test_code_of_the_folder_is_refused_in_djls_words(tmp_path: Path) -> None:
    made = folder(tmp_path, *CHAT)
    checkpoint(made / "weights", {**LLAMA, "auto_map": {"AutoModel": "m.M"}})
    spec, findings = read(made)
    assert spec is None
    assert "write option.trust_remote_code=true" in str(findings[0])


def test_weights_that_are_wrong_fail_the_load(tmp_path: Path) -> None:
    made = folder(tmp_path, *CHAT)
    write(made / "weights" / "model.safetensors", EMPTY_WEIGHTS[:5])
    spec, findings = read(made)
    assert spec is None
    assert "model.safetensors" in str(findings[0])


def test_djls_own_command_takes_bare_weights_under_its_settings(tmp_path: Path) -> None:
    weights = checkpoint(tmp_path / "chat-1")
    (weights / "onnx").mkdir()
    (weights / "onnx" / "model.onnx").touch()
    under = {"option.max_rolling_batch_size": SourceSetting("4", Origin("the environment", "X"))}
    form = DjlFormat(under, takes_weights=True)
    assert form.claims(weights)
    (spec,) = form.read(weights, Defaults()).specs
    assert (spec.name, spec.engine) == ("chat_1", "hf")
    assert spec.parameters == {"slots": "4", "async_mode": "true"}
