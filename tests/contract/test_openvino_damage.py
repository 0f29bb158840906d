"""Damaged and foreign files of OpenVINO language models: each ends in a load error that names file and engine."""

import json
import shutil

import pytest
from tests.harness import openvino_stand_in
from tests.harness.generating_workers import serving
from tests.harness.language_models import write_gguf
from tests.harness.openvino_models import needs_genai, write_gguf_of, write_halved, write_openvino
from tests.harness.openvino_specs import described

from trivium.engines.hf.genai.engine import ENGINE
from trivium.types.errors import Code, ServeError

needs_genai()

GRAPH, WEIGHTS, CONFIG, WORDS = "openvino_model.xml", "openvino_model.bin", "config.json", "tokenizer.json"


@pytest.fixture(scope="module")
def halved(tmp_path_factory):
    return write_halved(tmp_path_factory.mktemp("halved"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, halved):
    return write_openvino(tmp_path_factory.mktemp("openvino"), halved)


def cut(name, share=0.5):
    def damage(folder):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * share)])

    return damage


def without(name):
    return lambda folder: (folder / name).unlink()


def replaced(name, old, new):
    def damage(folder):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return damage


def filled(name, data):
    return lambda folder: (folder / name).write_bytes(data)


def wrong_size(folder):
    told = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**told, "num_attention_heads": "many"}))


DAMAGES = {
    "graph cut": (GRAPH, cut(GRAPH)),
    "graph empty": (GRAPH, filled(GRAPH, b"")),
    "graph absent": (GRAPH, without(GRAPH)),
    "graph of zeros": (GRAPH, filled(GRAPH, bytes(5000))),
    "graph of pictures": (GRAPH, replaced(GRAPH, 'name="input_ids"', 'name="inputs_embeds"')),
    "graph of another model": (GRAPH, replaced(GRAPH, 'name="input_ids"', 'name="pixels"')),
    "graph without states": (GRAPH, replaced(GRAPH, 'type="ReadValue"', 'type="Relu"')),
    "graph of unknown layers": (GRAPH, replaced(GRAPH, 'type="MatMul"', 'type="NoSuch"')),
    "weights cut": (WEIGHTS, cut(WEIGHTS)),
    "weights empty": (WEIGHTS, filled(WEIGHTS, b"")),
    "weights absent": (WEIGHTS, without(WEIGHTS)),
    "configuration cut": (CONFIG, cut(CONFIG)),
    "configuration absent": (CONFIG, without(CONFIG)),
    "configuration wrong": (CONFIG, wrong_size),
    "tokenizer cut": ("tokenizer", cut(WORDS)),
    "tokenizer absent": ("tokenizer", lambda folder: [one.unlink() for one in folder.glob("tokenizer*")]),
}


def refusal(place, **parameters) -> ServeError:
    """What stops a model from being served: its facts, or its process."""
    try:
        ENGINE.facts(described(place, **parameters))
    except ServeError as error:
        return error

    async def play(model):
        raise AssertionError("it serves")

    with pytest.raises(ServeError) as caught:
        serving(described(place, **parameters), play)
    return caught.value


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_a_load_error_that_names_file_and_engine(tmp_path, whole, name):
    folder = shutil.copytree(whole, tmp_path / "model")
    file, damage = DAMAGES[name]
    damage(folder)
    error = refusal(folder)
    assert error.code in (Code.LOAD_FAILED, Code.UNSUPPORTED)
    assert "Model 'm'" in error.message
    assert file in error.message or str(folder) in error.message
    assert file in ("config.json",) or "openvino-llm" in error.message, error.message


def test_damaged_and_foreign_gguf_files_are_too(tmp_path, halved):
    whole = write_gguf_of(halved, tmp_path / "whole.gguf")
    data = whole.read_bytes()
    single = write_gguf(tmp_path / "single.gguf")
    made = {
        "cut.gguf": data[: len(data) // 2],
        "head.gguf": data[:1000],
        "empty.gguf": b"",
        "text.gguf": b"no such file" * 10,
        "kind.gguf": data.replace(b"general.file_type", b"general.file_tipe"),
        "norm.gguf": data.replace(b"layer_norm_rms_epsilon", b"layer_norm_rms_epsilom"),
        "other.gguf": data.replace(b"qwen2", b"gemma"),
    }
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    for path in (*(tmp_path / name for name in made), single):
        error = refusal(path)
        assert error.code in (Code.LOAD_FAILED, Code.UNSUPPORTED)
        assert path.name in error.message
        assert "openvino-llm" in error.message, error.message
    assert "F32" in error.message, "OpenVINO GenAI reads no matrices of 32 bits"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"slotz": 3}, "Did you mean 'slots'?"),
        ({"dtype": "bf16"}, "'precision'"),
        ({"dtype": "fp32", "precision": "own"}, "contradict"),
        ({"quantize": "bitsandbytes8"}, "'quantize'"),
        ({"enable_lora": "true"}, "'enable_lora'"),
        ({"precision": "rough"}, "precision"),
        ({"slots": 0}, "slots"),
        ({"max_context": 513}, "at most 512"),
        ({"eos_token_id": 5000}, "token 5000"),
        ({"kv_bytes": 100}, "kv_bytes"),
    ],
)
def test_parameters_that_cannot_be_are_refused_by_name(whole, parameters, words):
    error = refusal(whole, **parameters)
    assert words in error.message


def test_the_stand_in_has_the_names_of_the_library():
    genai = pytest.importorskip("openvino_genai")
    for name in ("SchedulerConfig", "GenerationConfig"):
        ours, real = getattr(openvino_stand_in, name), getattr(genai, name)
        missing = [one for one in ours.__slots__ if not hasattr(real(), one)]
        assert not missing
    statuses = {one.name for one in openvino_stand_in.GenerationStatus}
    assert statuses <= set(genai.GenerationStatus.__members__)
    for ours, real in (
        (openvino_stand_in.ContinuousBatchingPipeline, genai.ContinuousBatchingPipeline),
        (openvino_stand_in.GenerationHandle, genai.py_openvino_genai.GenerationHandle),
    ):
        named = [one for one in vars(ours) if not one.startswith("_") and callable(getattr(ours, one))]
        assert named
        assert not [one for one in named if not hasattr(real, one)]
    for word in ("input_ids", "request_id", "generation_config"):
        assert word in genai.ContinuousBatchingPipeline.add_request.__doc__
    for word in ("generated_ids", "generated_log_probs"):
        assert hasattr(genai.py_openvino_genai.GenerationOutput, word)
