"""config.json of Hugging Face: what is read, and the sentence for what is not served; hostile ones raise nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivium.formats.checkpoint.config import (
    MAX_BYTES,
    MAX_TOKENIZER_CONFIG,
    HfConfig,
    read_config,
    read_tokenizer_code,
)
from trivium.formats.checkpoint.documents import read_object
from trivium.types.findings import Severity


def read(document: object) -> HfConfig:
    return read_config("config.json", json.dumps(document, indent=2).encode())


def faults(config: HfConfig) -> list[str]:
    assert all(one.severity is Severity.ERROR for one in config.findings)
    return [str(one) for one in config.findings]


def test_what_is_read_has_its_key_and_line() -> None:
    config = read(
        {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}
    )
    assert (config.architecture, config.context, config.dtype) == ("LlamaForCausalLM", 8192, "bfloat16")
    assert (config.context_key, config.dtype_key) == ("max_position_embeddings", "torch_dtype")
    assert config.file.line(config.context_key) == 5
    assert (config.findings, config.code) == ((), {})


@pytest.mark.parametrize(
    ("document", "architecture", "context"),
    [
        ({"architectures": ["GPT2LMHeadModel"], "n_positions": 1024, "n_ctx": 12}, "GPT2LMHeadModel", 1024),
        ({"architectures": ["X", "Qwen2ForCausalLM"]}, "Qwen2ForCausalLM", 0),
        ({"architectures": ["MixtralForCausalLM"], "n_ctx": 7, "dtype": None}, "MixtralForCausalLM", 7),
    ],
)
def test_causal_models(document: object, architecture: str, context: int) -> None:
    config = read(document)
    assert (config.architecture, config.context, config.findings) == (architecture, context, ())


@pytest.mark.parametrize(
    ("architectures", "words"),
    [
        (["BertForSequenceClassification"], "a model that classifies texts"),
        (["BertForTokenClassification"], "a model that classifies tokens"),
        (["BertForMaskedLM"], "a model that fills masks in"),
        (["BertForQuestionAnswering"], "finds answers in a text"),
        (["BertForMultipleChoice"], "chooses among texts"),
        (["T5ForConditionalGeneration"], "encodes before it generates"),
        (["T5WithLMHeadModel"], "encodes before it generates"),
        (["MarianMTModel"], "a model that translates"),
        (["ResNetModel"], "ResNetModel, which is no causal language model"),
        ([], "found"),
        (None, "missing"),
        ("LlamaForCausalLM", "expected a list with the name of one class"),
        ([3], "[3]"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_another_task_is_refused_with_what_is_served(architectures: object, words: str) -> None:
    (fault,) = faults(read({"architectures": architectures}))
    assert words.replace("found", "[]") in fault
    assert "ForCausalLM" in fault


def test_an_encoder_that_calls_itself_causal_is_refused() -> None:
    (fault,) = faults(read({"architectures": ["ProphetNetForCausalLM"], "is_encoder_decoder": True}))
    assert "encodes before it generates" in fault


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("max_position_embeddings", value) for value in ("2048", 0, -1, 2**31, True, [1], 1.5, 10**400)),
        *(("dtype", value) for value in (16, ["bf16"], "x" * 40, "\x00")),
        *(("auto_map", value) for value in ("x", [1], {"AutoModel": 3}, {"AutoModel": [3]})),
    ],
)
def test_a_value_of_a_wrong_type_is_named_with_its_line(key: str, value: object) -> None:
    config = read({"architectures": ["LlamaForCausalLM"], key: value})
    (fault,) = config.findings
    assert (fault.key, fault.line) == (key, 5)
    assert fault.expected
    assert fault.hint


def test_code_of_the_models_own_is_told_by_what_it_is_for() -> None:
    config = read(
        {
            "architectures": ["XForCausalLM"],
            "auto_map": {"AutoModelForCausalLM": "modeling.X", "AutoTokenizer": ["tokens.T", None]},
        }
    )
    assert config.code == {"AutoModelForCausalLM": "modeling.X", "AutoTokenizer": "tokens.T"}


def test_quantised_weights_are_refused_by_their_method() -> None:
    (fault,) = faults(
        read({"architectures": ["LlamaForCausalLM"], "quantization_config": {"quant_method": "awq"}})
    )
    assert "quantised by 'awq'" in fault
    assert ".gguf" in fault


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[]", "JSON that is no object"),
        (b"\xff\xfe", "no JSON"),
        (b"{" + b" " * MAX_BYTES + b"}", f"more than {MAX_BYTES} bytes"),
        (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "no JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "no JSON"),
    ],
    ids=["empty", "cut", "list", "utf-16", "huge", "nested", "digits"],
)
def test_what_is_no_object_is_refused(data: bytes, words: str) -> None:
    (fault,) = faults(read_config("config.json", data))
    assert words in fault
    assert "a JSON object of at most 1 MiB" in fault


def test_the_line_of_an_error_in_the_json_is_told() -> None:
    assert read_object("f", b'{"a": 1,\n b}', 100, "").findings[0].line == 2


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)
_KEYS = st.sampled_from(
    [
        *("architectures", "max_position_embeddings", "n_positions", "dtype", "torch_dtype", "auto_map"),
        *("quantization_config", "is_encoder_decoder"),
    ]
)


@given(st.dictionaries(_KEYS, _VALUES))
def test_any_document_is_read_or_refused(document: dict[str, object]) -> None:
    config = read(document)
    assert config.architecture or config.findings


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert read_config("config.json", data).findings


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('{"model_max_length": 1000000000000000019884624838656, "a": [1e400]}', {}, ""),
        ('{"auto_map": {"AutoTokenizer": ["a.B", null]}}', {"AutoTokenizer": "a.B"}, ""),
        ('{"auto_map": null}', {}, ""),
        ('{"auto_map": 3}', {}, "expected an object"),
        ('{"auto_map": {"AutoTokenizer": 3}}', {}, "expected an object"),
        ('{"auto_map": [' + "[], " * 400_000 + "[]]}", {}, "expected an object"),
        ('{"a": [' + "[], " * 400_000 + "[]]}", {}, ""),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", {}, "no JSON"),
        ('{"auto_map": ' + "[" * 900 + "]" * 900 + "}", {}, "expected an object"),
        ('"' * 2**22, {}, "texts"),
        (" " * (MAX_TOKENIZER_CONFIG + 1), {}, "bytes"),
        ("[]", {}, "no JSON"),
        ("", {}, "no JSON"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_of_a_tokenizers_configuration_its_code_is_read(text: str, code: dict[str, str], words: str) -> None:
    read, found = read_tokenizer_code("tokenizer_config.json", text.encode())
    assert found == code
    assert [words in str(fault) for fault in read.findings] == ([True] if words else [])
