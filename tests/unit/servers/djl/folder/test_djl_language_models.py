"""DJL folders of language models: which folders are one, each option of LMI's table, and where its value goes."""

from pathlib import Path

import pytest
from tests.harness.djl_folders import HANDLER, make
from tests.harness.llm_folders import EMPTY_WEIGHTS, GGUF, LLAMA, checkpoint, write

from trivium.catalogue import CATALOGUE
from trivium.servers.djl.folder.repository import DjlFormat
from trivium.servers.djl.words.language_model_keys import LANGUAGE_MODEL
from trivium.servers.djl.words.names import LANGUAGE_MODEL_OPTIONS, OPTION
from trivium.servers.djl.words.values import FORMS
from trivium.settings.kinds import SWITCH
from trivium.settings.setting import Support
from trivium.types.findings import Finding, Severity
from trivium.types.sources import SourceSetting
from trivium.types.spec import Batching, Defaults, Device, Dynamic, ModelSpec, Origin

CHAT = ("option.rolling_batch=auto", "option.model_id=weights")


def folder(tmp_path: Path, *settings: str, **files: str) -> Path:
    made = make(tmp_path, "m", *settings, **files)
    checkpoint(made / "weights")
    return made


def read(path: Path, **defaults: int) -> tuple[ModelSpec | None, tuple[Finding, ...]]:
    reading = DjlFormat().read(path, Defaults(**defaults))  # type: ignore[arg-type]
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
        ("option.rolling_batch=scheduler", "", True),
        ("option.rolling_batch=vllm", "is served by the engine hf", True),
        ("option.rolling_batch=lmi-dist", "is served by the engine hf", True),
        ("option.rolling_batch=deepspeed", "is served by the engine hf", True),
        ("option.rolling_batch=", "DJL batches statically", True),
        ("option.rolling_batch=trtllm", "TensorRT-LLM is not supported", False),
        ("option.rolling_batch=disable", "", True),
        ("option.rolling_batch=vlm", "Did you mean vllm?", False),
        ("option.entryPoint=djl_python.tensorrt_llm", "TensorRT-LLM is not supported", False),
        ("option.entryPoint=djl_python.transformers_neuronx", "NeuronX is not supported", False),
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
        *(([f"option.output_formatter={word}"], word) for word in ("json_chat", "none", "3p", "mine")),
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


def test_what_switches_rolling_batches_off_for_asynchronous_ones_is_served(tmp_path: Path) -> None:
    """DJL's advice for its newer engine: here requests run together either way."""
    spec, said = of(tmp_path, "option.rolling_batch=disable", "option.async_mode=true")
    assert spec is not None, said
    assert all(any(words in text for text in said) for words in ("as with auto", "always run together"))


def test_half_of_a_context_is_reported(tmp_path: Path) -> None:
    spec, (said,) = of(tmp_path, "option.max_input_len=5")
    assert spec is not None
    assert "has no effect without option.max_output_len" in said


def test_every_option_of_the_sheet_has_a_row() -> None:
    assert {OPTION + name for name in LANGUAGE_MODEL_OPTIONS} <= LANGUAGE_MODEL.keys()


def _wish(key: str) -> str:
    if key == "batchifier":
        return "stack"
    return "true" if FORMS.get(key) is SWITCH else "7"


@pytest.mark.parametrize("key", sorted(LANGUAGE_MODEL))
def test_no_option_is_taken_in_silence(tmp_path: Path, key: str) -> None:
    """A value of every key that is not used is named, unless it wishes for nothing."""
    row = LANGUAGE_MODEL[key]
    if row.support is Support.YES:
        return
    for word in row.harmless:
        assert of(tmp_path / (word or "_"), f"{key}={word}")[1] == []
    spec, said = of(tmp_path / "wish", f"{key}={_wish(key)}")
    assert any(key in text for text in said)
    assert (spec is None) is (row.support is Support.REFUSED)
    severity = Severity.ERROR if row.support is Support.REFUSED else Severity.NOTICE
    assert any(text.startswith(severity.value) for text in said)


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
    assert (spec.name, spec.engine, spec.parameters) == ("chat_1", "hf", {"slots": "4"})
