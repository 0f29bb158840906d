"""GGUF files by our own reader: the same weights, words and answers as transformers' way, and no crash by a mutant."""

import json
import logging
import random
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.harness.language_models import KINDS, SERVED, Steps, spec, text, tokenizer, write, write_gguf

from trivium.engines.hf.description import describe, read_config
from trivium.engines.hf.engine import ENGINE
from trivium.engines.hf.gguf_model import open_gguf
from trivium.engines.hf.sizes import GGUF_CLASSES, config_sizes
from trivium.types.errors import Code, ServeError
from trivium.types.generation import Sampling

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")
numpy = pytest.importorskip("numpy")

SIZES = {
    "vocab_size": 768,
    "hidden_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 512,
    "max_position_embeddings": 256,
}
EXTRA = {"qwen3": {"head_dim": 128}, "gemma2": {"head_dim": 64}, "gemma3": {"head_dim": 64}}
PIECES = frozenset({"phi3", "gemma2", "gemma3"})
"""Architectures that are written with words of SentencePiece's kind."""

BLOCKS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K")


def write_any(path: Path, architecture: str, *blocks: str) -> Path:
    """Write random weights of an architecture, in blocks of these kinds by turns, with the harness's words."""
    kind = "gemma3_text" if architecture == "gemma3" else architecture
    config = transformers.AutoConfig.for_model(kind, **SIZES, **EXTRA.get(architecture, {}), pad_token_id=1)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("Tiny")
    writer.add_context_length(256)
    writer.add_embedding_length(256)
    writer.add_block_count(2)
    writer.add_feed_forward_length(512)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_layer_norm_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(768)
    writer.add_key_length(EXTRA.get(architecture, {}).get("head_dim", 64))
    if architecture == "llama":
        writer.add_rope_dimension_count(64)
    if architecture.startswith("gemma"):
        writer.add_sliding_window(24)
    _write_words(writer, architecture)
    _write_tensors(writer, architecture, model, blocks or ("F32",))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_words(writer, architecture) -> None:
    made = tokenizer()
    if architecture in PIECES:
        pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
        letters = [chr(i) for i in range(97, 123)]
        pieces += ["▁", *letters, *(f"▁{one}" for one in letters), "▁th", "▁the", "he", "in", "▁in"]
        pieces += [f"<unused{i}>" for i in range(768 - len(pieces))]
        writer.add_tokenizer_model("llama")
        writer.add_token_list(pieces)
        writer.add_token_scores([-float(i) for i in range(768)])
        writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * (768 - 259)])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)
        writer.add_pad_token_id(0)
        return
    words = made.get_vocab()
    tokens = sorted(words, key=words.get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2" if architecture.startswith("qwen") else "default")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if i < 4 else 1 for i in range(len(tokens))])
    merges = json.loads(made.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(1)
    writer.add_chat_template(made.chat_template)


def _write_tensors(writer, architecture, model, blocks) -> None:
    chance = numpy.random.default_rng(7)
    number = next(one for one, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(number, 2)
    for at, (name, weight) in enumerate(model.state_dict().items()):
        stem, _, end = name.rpartition(".")
        if "lm_head" in name and model.config.tie_word_embeddings:
            continue
        shape = tuple(weight.shape)
        if len(shape) == 1:
            numbers = chance.normal(1 if end == "weight" else 0, 0.1, shape).astype("float32")
            writer.add_tensor(f"{names.get_name(stem)}.{end}", numbers)
            continue
        kind = gguf.GGMLQuantizationType[blocks[at % len(blocks)]]
        if kind.name.endswith("_K"):  # which nobody writes in Python: scales, and any bits
            count, size = gguf.GGML_QUANT_SIZES[kind]
            data = chance.integers(0, 256, (*shape[:-1], shape[-1] // count, size), "uint8")
            scales = (0, 2) if kind.name == "Q4_K" else (208,)
            for start in scales:
                data[..., start : start + 2] = numpy.frombuffer(struct.pack("<e", 0.0005), "uint8")
            data = data.reshape(*shape[:-1], -1)
        else:
            data = gguf.quants.quantize(chance.normal(0, 0.08, shape).astype("float32"), kind)
        writer.add_tensor(f"{names.get_name(stem)}.{end}", data, raw_dtype=kind)


@pytest.mark.parametrize("architecture", GGUF_CLASSES)
def test_weights_words_and_configuration_are_those_of_transformers(tmp_path, architecture):
    path = write_any(tmp_path / "model.gguf", architecture, *BLOCKS)
    extra = {"gguf_file": path.name, "quantization_config": transformers.GgufConfig(dequantize=True)}
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, **extra)
    ours = open_gguf(path)
    config = ours.config()
    with torch.device("meta"):
        skeleton = transformers.AutoModelForCausalLM.from_config(config)
    assert type(skeleton) is type(theirs)
    found, expected = dict(ours.weights(skeleton)), theirs.state_dict()
    assert found.keys() | {"lm_head.weight"} == expected.keys() | {"lm_head.weight"}
    for name, numbers in found.items():
        assert torch.equal(torch.from_numpy(numbers), expected[name]), name
    mine, other = config.to_dict(), theirs.config.to_dict()
    names = ("architectures", "dtype", "_name_or_path", "_model_name_or_path", "quantization_config")
    assert {key: mine[key] for key in mine if key not in names} == {
        key: other[key] for key in other if key not in names
    }
    words = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    mine = ours.tokenizer()
    for one in (text(1, 400), "<|user|>Hello</s>", "  1234567 ü€漢字\n\n x", "the inner the</s>"):
        assert mine(one).input_ids == words(one).input_ids
        assert mine.decode(mine(one).input_ids) == words.decode(words(one).input_ids)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "chat_template"):
        assert getattr(mine, name) == getattr(words, name)


@pytest.mark.parametrize("architecture", GGUF_CLASSES)
def test_the_head_tells_the_sizes_of_the_configuration(tmp_path, architecture):
    path = write_any(tmp_path / "model.gguf", architecture)
    told = describe(spec(path), False)
    text_config = open_gguf(path).config().get_text_config()
    head = getattr(text_config, "head_dim", None) or 64
    assert told.sizes.cached == 2 * 2 * 2 * head
    assert (told.sizes.width, told.sizes.vocabulary, told.sizes.context) == (256, 768, 256)


@pytest.mark.parametrize("kind", KINDS)
def test_a_configuration_tells_the_sizes_that_its_class_has(tmp_path, kind):
    folder = write(tmp_path, kind)
    model = spec(folder)
    told = describe(model, False)
    asked = replace(told.sizes)
    known = config_sizes(told.files.config)
    if kind in SERVED and kind not in ("deepseek_v3", "gpt_oss"):
        assert known == asked, "it is told without a library"
    config = read_config(model, told).get_text_config()
    if kind == "deepseek_v3":
        return
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    groups = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    assert asked.cached == config.num_hidden_layers * head * groups * 2
    assert (asked.width, asked.vocabulary) == (config.hidden_size, config.vocab_size)
    assert asked.context == getattr(config, "max_position_embeddings", None)


def test_the_probe_imports_neither_torch_nor_transformers(tmp_path):
    folder, path = write(tmp_path / "m", "llama"), write_any(tmp_path / "x.gguf", "qwen2", "Q8_0")
    code = (
        "import sys, pathlib; sys.path[:0] = ['.', 'src']\n"
        "from tests.harness.language_models import spec\n"
        "from trivium.engines.hf.engine import ENGINE\n"
        f"for path in ({str(folder)!r}, {str(path)!r}):\n"
        "    print(ENGINE.facts(spec(pathlib.Path(path))).details['architecture'][0])\n"
        "print(sorted({'torch', 'transformers', 'tokenizers', 'safetensors'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["LlamaForCausalLM", "Qwen2ForCausalLM", "[]"]


def _mapped(name: str) -> bool:
    return name in Path("/proc/self/maps").read_text()


def test_converted_weights_are_kept_mapped_and_used_again(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "trivium.engines.hf")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write_gguf(tmp_path / "tiny.gguf")
    request = {"prompts": (text(1, 100),), "sampling": Sampling(max_tokens=8)}
    with Steps(path, slots=1, weights_cache_bytes=0) as steps:
        (expected,) = steps.answers([request])
    assert not (tmp_path / "cache").exists()
    for _ in range(2):
        with Steps(path, slots=1) as steps:
            assert steps.answers([request])[0].choices[0].ids == expected.choices[0].ids
            (kept,) = (tmp_path / "cache" / "trivium" / "weights").iterdir()
            assert _mapped(str(kept / "model.safetensors"))
    assert sum("are kept in" in one.message for one in caplog.records) == 1
    (kept / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0nonsense")
    with Steps(path, slots=1) as steps:
        assert steps.answers([request])[0].choices[0].ids == expected.choices[0].ids
    assert any("converted again" in one.message for one in caplog.records)


def test_a_cache_that_cannot_be_written_to_costs_a_line(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "trivium.engines.hf")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with Steps(write_gguf(tmp_path / "tiny.gguf"), slots=1) as steps:
        steps.answers([{"ids": ((5, 6),), "sampling": Sampling(max_tokens=2)}])
    assert [one.message for one in caplog.records if "converted to fp32 at each load" in one.message]


def test_a_folder_stored_otherwise_is_converted_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = write(tmp_path / "m", "llama")
    request = {"ids": ((5, 6, 7),), "sampling": Sampling(max_tokens=4)}
    with Steps(folder, slots=1, dtype="bf16", weights_cache_bytes=0) as steps:
        (expected,) = steps.answers([request])
    with Steps(folder, slots=1, dtype="bf16") as steps:
        assert steps.answers([request])[0].choices[0].ids == expected.choices[0].ids
    (kept,) = (tmp_path / "cache" / "trivium" / "weights").iterdir()
    with Steps(folder, slots=1) as steps:
        assert _mapped(str(folder / "model.safetensors")), "what is stored as it is computed is not converted"
        steps.answers([request])
    assert [kept] == list(kept.parent.iterdir())


def test_mutants_of_a_head_are_refused_with_a_teaching_error_or_served(tmp_path):
    chance = random.Random(37)
    whole = write_gguf(tmp_path / "tiny.gguf").read_bytes()
    path = tmp_path / "mutant.gguf"
    refused = []
    for turn in range(400):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(700) if chance.random() < 0.5 else chance.randrange(len(whole) // 20)
            if chance.random() < 0.5:
                data[at] = chance.randrange(256)
            else:
                size = chance.choice((4, 8))
                data[at : at + size] = chance.choice((0, 1, 2**31 - 1, 2**32 - 1)).to_bytes(size, "little")
        path.write_bytes(data)
        try:
            ENGINE.facts(spec(path))
            if turn % 16 == 0:
                Steps(path, slots=1, max_context=16, weights_cache_bytes=0).runner.close()
        except ServeError as error:
            refused.append(error)
    assert {one.code for one in refused} <= {Code.LOAD_FAILED, Code.UNSUPPORTED, Code.OUT_OF_MEMORY}
    assert all(one.message.startswith("Model 'm': ") for one in refused)
    assert len(refused) > 100


def test_a_file_that_contradicts_its_own_sizes_is_refused(tmp_path):
    whole = write_gguf(tmp_path / "tiny.gguf").read_bytes()
    key = b"llama.block_count" + struct.pack("<I", 4)
    at = whole.index(key) + len(key)
    (tmp_path / "huge.gguf").write_bytes(whole[:at] + struct.pack("<I", 2**31) + whole[at + 4 :])
    with pytest.raises(ServeError, match="2147483648 layers, and its 21 tensors"):
        ENGINE.facts(spec(tmp_path / "huge.gguf"))


def test_findings_of_texts_are_told_and_end_no_load(tmp_path):
    folder = write(tmp_path, "llama")
    (folder / "chat_template.jinja").write_text("{{ bos_token }}\n{% for m in messages %}")
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    document["added_tokens"].append(
        document["added_tokens"][0] | {"id": 768, "content": "<beyond>", "special": False}
    )
    path.write_text(json.dumps(document))
    beyond, template = ENGINE.facts(spec(folder)).notes
    assert "makes token 768 ('<beyond>'), and the embedding has 768 rows" in beyond
    assert f"{folder / 'chat_template.jinja'}:2 is no template of Jinja" in template
    with Steps(folder, slots=1) as steps:
        steps.answers([{"prompts": ("a",), "sampling": Sampling(max_tokens=2)}])
