"""Tiny language models for OpenVINO GenAI: a model of `language_models`, as GGUF of half precision and as a folder.

The folder is made of the GGUF by OpenVINO GenAI itself, in a process of its own, since it quarrels with PyTorch. Their
weights are the same numbers, so that tokens can be compared with those of `generate`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness import language_models
from tests.harness.language_models import VOCABULARY, tokenizer, write

_SAVE = (
    "import sys, openvino_genai as g; s = g.SchedulerConfig(); s.num_kv_blocks = 8; "
    "g.ContinuousBatchingPipeline(sys.argv[1], s, 'CPU', {'enable_save_ov_model': True})"
)
_OF_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_OTHERS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def needs_genai() -> None:
    """Skip what follows where the library is not installed."""
    pytest.importorskip("openvino_genai")


def write_halved(folder: Path, seed: int = 0) -> Path:
    """Write a model of Qwen2's kind whose weights are numbers of half precision, in safetensors of 32 bits."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    write(folder, "qwen2", seed)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half().float())
    model.save_pretrained(folder)
    return folder


def write_gguf_of(folder: Path, path: Path) -> Path:
    """Write the model of `write_halved` as a GGUF file, and return its path."""
    gguf = pytest.importorskip("gguf")
    numpy = pytest.importorskip("numpy")
    load_file = pytest.importorskip("safetensors.numpy").load_file
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_context_length(512)
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(1)
    language_models.add_words(writer)
    for name, numbers in load_file(folder / "model.safetensors").items():
        stem, _, end = name.rpartition(".")
        words = stem.removeprefix("model.layers.").partition(".")
        ours = _OTHERS.get(stem) or f"blk.{words[0]}.{_OF_LAYER[words[2]]}"
        kind = numpy.float16 if numbers.ndim > 1 else numpy.float32
        writer.add_tensor(f"{ours}.{end}", numbers.astype(kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_openvino(folder: Path, halved: Path) -> Path:
    """Write the model of `write_halved` as a folder of OpenVINO, and return it."""
    needs_genai()
    made = write_gguf_of(halved, folder / "made.gguf")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", _SAVE, str(made)], check=True, env=variables, timeout=120)
    made.unlink()
    tokenizer().save_pretrained(folder)
    for name in ("config.json", "generation_config.json"):
        (folder / name).write_bytes((halved / name).read_bytes())
    return folder
