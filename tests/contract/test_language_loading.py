"""Which language models are opened, and with what words others are refused, before any of their code runs."""

import json
import pickle
import random
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.harness.language_models import HERE, Steps, spec, text, tokenizer, write, write_gguf

from trivium.codecs.generation import EMBEDS, INPUTS, OUTPUTS
from trivium.engines.hf import description, loading
from trivium.engines.hf.engine import ENGINE
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Sampling
from trivium.types.spec import Device

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return write(tmp_path_factory.mktemp("made"), "llama")


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "model")


@pytest.fixture(scope="module")
def gguf(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def refused(path, code, words, **parameters):
    with pytest.raises(ServeError, match=words) as caught:
        Steps(path, **parameters)
    assert caught.value.code is code
    assert caught.value.message.startswith("Model 'm': ")
    return caught.value.message


def change(folder, **fields):
    path = folder / "config.json"
    told = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({name: value for name, value in told.items() if value is not None}))


def test_the_descriptor_needs_no_library():
    code = "import sys, trivium.engines.hf.engine; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_facts_say_sizes_and_memory_and_the_form_of_a_request(folder):
    found = ENGINE.facts(spec(folder, slots=4, slot=3))
    assert [one.name for one in found.inputs] == [one.name for one in INPUTS]
    assert all(one.optional for one in found.inputs)
    assert next(one.dims for one in found.inputs if one.name == EMBEDS) == (-1, 64)
    assert found.outputs == OUTPUTS
    assert ["'slot' has no meaning" in note for note in found.notes] == [True]
    assert {
        name: value for name, (value, _) in found.details.items() if name not in ("memory", "kv_bytes")
    } == {
        "architecture": "LlamaForCausalLM",
        "vocabulary": "768 tokens",
        "slots": "4",
        "context": "512 tokens per slot",
        "dtype": "fp32",
        "ends": "1",
        "sampling": "as each request says",
    }
    assert "512 bytes for each token" in found.details["memory"][0]
    assert found.details["kv_bytes"][0] == f"{4 * 512 * 512}, which is 2048 tokens"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("bloom", "BloomForCausalLM computes its attention in a way of its own.*vLLM"),
        ("gpt_oss", "GptOssAttention asks for s_aux.*vLLM"),
    ],
)
def test_a_model_that_cannot_be_served_is_refused_by_name(tmp_path, kind, words):
    refused(write(tmp_path, kind), Code.UNSUPPORTED, words)


def test_a_model_that_would_answer_otherwise_is_refused(folder, monkeypatch):
    whole = loading.StepAttention.attend

    def other(self, module, query, *told, **named):
        out, none = whole(self, module, query, *told, **named)
        return (out * 1.2 if module.layer_idx else out), none

    monkeypatch.setattr(loading.StepAttention, "attend", other)
    refused(
        folder,
        Code.UNSUPPORTED,
        "LlamaForCausalLM computes something that this engine does not know: after a",
    )


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"architectures": ["BertModel"]}, Code.UNSUPPORTED, "'BertModel'; expected a causal language model"),
        ({"architectures": None}, Code.UNSUPPORTED, "architecture 'none'"),
        ({"auto_map": {"AutoModel": "x.y"}}, Code.UNSUPPORTED, "trust_remote_code to true"),
        ({"hidden_size": None, "model_type": "nonsense"}, Code.LOAD_FAILED, "cannot read its configuration"),
        ({"num_hidden_layers": 3}, Code.LOAD_FAILED, "lack .* of the weights"),
        ({"hidden_size": 128}, Code.LOAD_FAILED, "cannot open its weights"),
        ({"layer_types": ["linear_attention"] * 2}, Code.UNSUPPORTED, "linear_attention"),
    ],
)
def test_a_configuration_that_cannot_be_served(folder, fields, code, words):
    change(folder, **fields)
    refused(folder, code, words)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "[" * 100_000, '{"architectures": ["XForCausalLM"]}']
)
def test_a_configuration_that_is_none(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(ServeError) as caught:
        ENGINE.facts(spec(folder))
    assert caught.value.code in (Code.LOAD_FAILED, Code.UNSUPPORTED)


def test_pickled_weights_are_never_read(folder):
    class Boom:
        def __reduce__(self):
            return sys.exit, ("it was read",)

    (folder / "model.safetensors").unlink()
    refused(folder, Code.LOAD_FAILED, "there are no weights")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Boom()))
    refused(folder, Code.UNSUPPORTED, r"pickled \(pytorch_model.bin\).*save_pretrained")


def test_an_index_cannot_lead_out_of_its_folder(folder):
    (folder / "model.safetensors").rename(folder.parent / "out.safetensors")
    index = {"weight_map": {"a": "../out.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, Code.LOAD_FAILED, "names the file '../out.safetensors'")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_damaged_file_fails_the_load_and_nothing_else(folder, name):
    chance = random.Random(7)
    whole = (folder / name).read_bytes()
    cuts = [whole[: chance.randrange(len(whole))] for _ in range(6)]
    heads = []
    for _ in range(6):
        data = bytearray(whole)
        for _ in range(8):
            data[chance.randrange(min(len(data), 2000))] = chance.randrange(256)
        heads.append(bytes(data))
    for content in (b"", b"\xff" * 8, *cuts):
        (folder / name).write_bytes(content)
        refused(folder, Code.LOAD_FAILED, "safetensors|tokenizer")
    for content in heads:  # some of it may still be a model
        (folder / name).write_bytes(content)
        with suppress(ServeError), Steps(folder, slots=1) as steps:
            steps.answers([{"ids": ((5,),), "sampling": Sampling(max_tokens=2)}])


def test_a_damaged_gguf_file_fails_the_load_and_nothing_else(gguf, tmp_path):
    chance = random.Random(8)
    whole, path = gguf.read_bytes(), tmp_path / "broken.gguf"
    for content in (
        b"",
        b"GGUF",
        b"GGML" + whole[4:],
        *(whole[: chance.randrange(len(whole))] for _ in range(8)),
    ):
        path.write_bytes(content)
        refused(path, Code.LOAD_FAILED, "GGUF")
    for _ in range(10):
        data = bytearray(whole)
        for _ in range(4):
            data[chance.randrange(300)] = chance.randrange(256)
        path.write_bytes(bytes(data))
        with suppress(ServeError):
            Steps(path, slots=1).runner.close()


def test_a_gguf_file_answers_as_generate_does(gguf):
    model = transformers.AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name).eval()
    ids = tokenizer()(text(1, 100), return_tensors="pt").input_ids
    expected = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
    assert ENGINE.facts(spec(gguf)).details["architecture"][0] == "LlamaForCausalLM"
    with Steps(gguf, slots=2) as steps:
        (answer,) = steps.answers([{"prompts": (text(1, 100),), "sampling": Sampling(max_tokens=12)}])
    assert list(answer.choices[0].ids) == expected[0, ids.shape[1] :].tolist()


def test_a_load_that_cannot_fit_is_refused_before_it_begins(folder, monkeypatch):
    monkeypatch.setattr(loading, "free_memory", lambda device: 137 * 10**6)
    words = refused(folder, Code.OUT_OF_MEMORY, "it needs about", kv_bytes="4M", slots=1000)
    most = re.search(r"It would fit with kv_bytes=(\d+)", words)
    assert most, words
    for fitting in ({"kv_bytes": most[1], "slots": 1000}, {}):
        with Steps(folder, **fitting) as steps:
            assert steps.runner.slots == fitting.get("slots", 32)
            assert steps.answers([{"prompts": ("a",), "sampling": Sampling(max_tokens=2)}])
    monkeypatch.setattr(loading, "free_memory", lambda device: 134 * 10**6)
    refused(folder, Code.OUT_OF_MEMORY, "one sequence of 512 tokens")
    refused(
        folder, Code.OUT_OF_MEMORY, "'kv_bytes' is 100; expected at least 16384, for 32 tokens", kv_bytes=100
    )


def test_a_context_beyond_the_models_is_refused(folder):
    refused(folder, Code.LOAD_FAILED, "'max_context' is 513; expected at most 512", max_context=513)


def test_positions_that_depend_on_neighbours_bound_the_context(folder):
    change(folder, rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0})
    change(folder, max_position_embeddings=2048)
    assert description.describe(spec(folder), False).context == 2048
    rope = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 512}
    change(folder, rope_parameters=rope)
    assert description.describe(spec(folder), False).context == 512


@pytest.mark.parametrize(("flags", "expected"), [({"avx512_bf16"}, "bf16"), (set(), "fp32")])
def test_sixteen_bits_are_kept_where_the_processor_has_them(folder, monkeypatch, flags, expected):
    change(folder, dtype="bfloat16")
    monkeypatch.setattr(description, "processor_flags", lambda: frozenset(flags))
    assert description.describe(spec(folder), False).dtype == expected
    assert description.describe(spec(folder), True).dtype == "bf16"
    assert description.describe(spec(folder, dtype="fp16"), False).dtype == "fp16"


def test_a_gpu_that_is_not_there_is_refused(folder):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ServeError, match="to run on GPU 0, and this PyTorch sees 0 GPUs"):
        ENGINE.open_steps(spec(folder), replace(HERE, device=Device.GPU), None)


def test_a_library_that_lacks_is_named_with_its_install_command(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ServeError, match="-m pip install 'accelerate>=") as caught:
        ENGINE.facts(spec(folder))
    assert caught.value.code is Code.UNSUPPORTED
