"""Arguments of KServe's servers behind `trivium serve`: what becomes of each, alone and together."""

import pytest

from trivium.cli.container_policy import Surroundings, container_start
from trivium.cli.kserve_words import translated

MODEL = "iris=/mnt/models"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((MODEL, "--host=0.0.0.0"), (MODEL, "--host=0.0.0.0")),
        ((MODEL, "--http-port=8080", "--http_port=9000"), (MODEL, "--http-port=8080", "--http-port", "9000")),
        ((MODEL, "--http_port", "9000", "--open"), (MODEL, "--open", "--http-port", "9000")),
        ((MODEL, "--model_name=mine"), ("mine=/mnt/models",)),
        ((MODEL, "--model_name", "mine", "--model_name", "yours"), ("yours=/mnt/models",)),
        (("/mnt/models", "--model_name=mine"), ("mine=/mnt/models",)),
        ((MODEL, "--model_dir=/opt/model"), ("iris=/opt/model",)),
        (("--open", "--model_name=mine"), ("mine=/mnt/models", "--open")),
        ((MODEL, "--model_id=org/bert"), ("iris=hf://org/bert",)),
        ((MODEL, "--model_id=org/bert", "--model_revision=v1"), ("iris=hf://org/bert@v1",)),
        ((MODEL, "--model_id=/models/bert"), ("iris=/models/bert",)),
        ((MODEL, "--enable_grpc=false"), (MODEL, "--no-grpc")),
        ((MODEL, "--enable_grpc=True"), (MODEL,)),
        ((MODEL, "--dtype=float16"), (MODEL, "--engine-parameters", "hf.dtype=fp16,hf-tasks.dtype=fp16")),
        (
            (MODEL, "--engine-parameters=onnx.threads=2", "--max_length=512", "--trust_remote_code"),
            (
                MODEL,
                "--engine-parameters",
                "onnx.threads=2,hf.max_context=512,hf-tasks.max_input_tokens=512,hf.trust_remote_code=true,"
                "hf-tasks.trust_remote_code=true",
            ),
        ),
        (
            (MODEL, "--ssl_certfile=a", "--ssl_keyfile=b"),
            (MODEL, "--http-tls-certificate", "a", "--http-tls-key", "b"),
        ),
        ((MODEL, "--trust_remote_code=false", "--return_probabilities=False"), (MODEL,)),
        ((MODEL, "--no_such=1"), (MODEL, "--no_such=1")),
    ],
)
def test_words_become_ours(given: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert translated(given, {}).words == words


def test_a_model_of_the_hub_is_kept_where_a_pod_may_write() -> None:
    start = container_start(("trivium", "serve", MODEL, "--model_id=org/bert"), Surroundings())
    assert start.variables == {"TRIVIUM_HOST": "0.0.0.0", "HF_HOME": "/tmp/huggingface"}
    assert (
        "HF_HOME"
        not in container_start(("trivium", "serve", MODEL, "--dtype=auto"), Surroundings()).variables
    )


def test_what_has_no_effect_is_told() -> None:
    found = translated((MODEL, "--enable_docs_url=True", "--workers", "2", "--disable_log_requests"), {})
    assert found.words == (MODEL,)
    assert [note.partition(":")[0] for note in found.notes] == [
        "--enable_docs_url has no effect",
        "--workers has no effect",
        "--disable_log_requests has no effect",
    ]


def test_parameters_of_the_variable_stay() -> None:
    variables = {"TRIVIUM_ENGINE_PARAMETERS": "hf.slots=2"}
    assert (
        translated((MODEL, "--dtype=auto"), variables).words[-1]
        == "hf.slots=2,hf.dtype=auto,hf-tasks.dtype=auto"
    )


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--return_probabilities", "parameters"),
        ("--disable_lower_case", "tokenizer_config.json"),
        ("--tokenizer_revision=1", "Leave the argument out"),
        ("--backend=vllm", "serving.properties"),
        ("--model_revision=1", "--model_id"),
        ("--http_port=", "--http_port=VALUE"),
        ("--http_port", "--http_port=VALUE"),
    ],
)
def test_what_would_change_answers_is_refused(word: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        translated((MODEL, word), {})


def test_the_container_becomes_the_translated_command() -> None:
    start = container_start(("trivium", "serve", MODEL, "--model_name=mine", "--nthread=2"), Surroundings())
    assert start.words == ("trivium", "serve", "mine=/mnt/models")
    assert start.notes == ("--nthread has no effect: threads follow from the processors of the container.",)
    assert container_start(("trivium", "demo", "--workers=2"), Surroundings()).words[-1] == "--workers=2"
