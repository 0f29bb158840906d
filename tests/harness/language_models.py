"""Tiny language models with random weights, written to a folder by a seed, and the specs that serve them.

Their tokenizer is trained on the standard library's own documentation. Weights are scaled so that the two best logits
lie apart, as those of trained models do. Needs torch and transformers.
"""

import json
import re
import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from tests.harness.virtual_models import make_spec

from trivium.engines.hf.engine import ENGINE
from trivium.types.adapters import FUNCTIONS, payload
from trivium.types.errors import ServeError
from trivium.types.generation import Embeddings, Generate, Generated, Sampling, joined
from trivium.types.operations import Infer
from trivium.types.running import Placement
from trivium.types.spec import Isolation

HERE = Placement("m_0", Isolation.PROCESS)
VOCABULARY = 768
TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'refuse' %}{{ raise_exception('no such role') }}{% endif %}"
    "<|{{ message['role'] }}|>{{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
}
_GROUPED = {"num_key_value_heads": 2, "intermediate_size": 128}
_KINDS = {
    "llama": ("LlamaConfig", _SIZES | _GROUPED),
    "mistral": ("MistralConfig", _SIZES | _GROUPED | {"sliding_window": 24}),
    "qwen2": ("Qwen2Config", _SIZES | _GROUPED),
    "qwen3": ("Qwen3Config", _SIZES | _GROUPED | {"head_dim": 16}),
    "gemma2": ("Gemma2Config", _SIZES | _GROUPED | {"head_dim": 16, "sliding_window": 24}),
    "gemma3": (
        "Gemma3TextConfig",
        _SIZES
        | _GROUPED
        | {
            "head_dim": 16,
            "sliding_window": 24,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "phi3": ("Phi3Config", _SIZES | _GROUPED),
    "gpt2": ("GPT2Config", _SIZES),
    "gpt_neox": ("GPTNeoXConfig", _SIZES | {"intermediate_size": 128}),
    "opt": ("OPTConfig", _SIZES | {"ffn_dim": 128, "word_embed_proj_dim": 64}),
    "mixtral": ("MixtralConfig", _SIZES | _GROUPED | {"num_local_experts": 4}),
    "deepseek_v3": (
        "DeepseekV3Config",
        _SIZES
        | {
            "num_key_value_heads": 4,
            "intermediate_size": 128,
            "moe_intermediate_size": 32,
            "n_routed_experts": 8,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 16,
            "v_head_dim": 16,
        },
    ),
    "gpt_oss": (
        "GptOssConfig",
        _SIZES | _GROUPED | {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "bloom": ("BloomConfig", {"vocab_size": VOCABULARY, "hidden_size": 64, "n_layer": 2, "n_head": 4}),
}
KINDS = tuple(_KINDS)
SERVED = tuple(kind for kind in _KINDS if kind not in ("gpt_oss", "bloom"))


def text(start: int, length: int) -> str:
    """Some English, the same for the same arguments."""
    whole = _documentation()
    start = start * 7919 % (len(whole) - length)
    return whole[start : start + length]


def write(folder: Path, kind: str, seed: int = 0, made=None, **others: int) -> Path:
    """Write a model of a kind, some of whose sizes may be others, with the tokenizer that was `made` for it, and return
    its folder.
    """
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    name, sizes = _KINDS[kind]
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_config(
        getattr(transformers, name)(**sizes | others)
    ).eval()
    made = made or tokenizer()
    scale(model, torch, made)
    model.save_pretrained(folder)
    made.save_pretrained(folder)
    return folder


def write_tokenizer(folder: Path, kind: str) -> Path:
    """Write a model of a kind without its weights, and return its folder."""
    transformers = pytest.importorskip("transformers")
    name, sizes = _KINDS[kind]
    getattr(transformers, name)(**sizes).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def scale(model, torch, made):
    """Spread the weights, and the logits, until the two best of half the tokens lie 0.1 apart at least."""
    with torch.inference_mode():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
        ids = torch.tensor([made(text(3, 600))["input_ids"][:200]])
        for _ in range(12):
            best = model(input_ids=ids).logits[0].topk(2, -1).values
            if float((best[:, 0] - best[:, 1]).median()) >= 0.2:
                return
            model.get_output_embeddings().weight.mul_(1.5)


def write_gguf(path: Path, kind: str = "float32", scale: float = 0.15) -> Path:
    """Write a model of random numbers, whose matrices are of a kind, as one GGUF file, and return its path."""
    gguf = pytest.importorskip("gguf")
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(5)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(16)
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(0 if kind == "float32" else 1)
    add_words(writer)
    shapes = {"token_embd": (VOCABULARY, 64), "output": (VOCABULARY, 64), "output_norm": (64,)}
    for i in range(2):
        shapes |= {f"blk.{i}.{name}": (64,) for name in ("attn_norm", "ffn_norm")}
        shapes |= {f"blk.{i}.{name}": (64, 64) for name in ("attn_q", "attn_output")}
        shapes |= {f"blk.{i}.{name}": (32, 64) for name in ("attn_k", "attn_v")}
        shapes |= {f"blk.{i}.{name}": (128, 64) for name in ("ffn_gate", "ffn_up")}
        shapes |= {f"blk.{i}.ffn_down": (64, 128)}
    for name, shape in shapes.items():
        is_matrix = len(shape) > 1
        numbers = random.normal(0, scale, shape) if is_matrix else numpy.ones(shape)
        writer.add_tensor(f"{name}.weight", numbers.astype(kind if is_matrix else "float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_words(writer) -> None:
    """Add the tokenizer to a GGUF file that is being written."""
    whole = json.loads(tokenizer().backend_tokenizer.to_str())["model"]
    tokens = sorted(whole["vocab"], key=whole["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if i < 4 else 1 for i in range(len(tokens))])
    writer.add_token_merges([" ".join(pair) for pair in whole["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)


@cache
def tokenizer():
    """A byte-level tokenizer with a chat template."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>", "<|user|>", "<|assistant|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([_documentation()[:200_000]], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", chat_template=TEMPLATE
    )


def sentence_pieces():
    """A tokenizer of SentencePiece's kind, which has a blank in front of a text and drops it: words, and letters."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = sorted({word for word in _documentation()[:20_000].split() if word.isalpha()})[:150]
    letters = sorted({letter for letter in _documentation() if 32 < ord(letter) < 127})
    pieces = ["<unk>", "<s>", "</s>", "▁", *letters, *(f"▁{word}" for word in words)]
    scores = [(piece, -1.0 if len(piece) > 2 else -5.0) for piece in dict.fromkeys(pieces)]
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, 0))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace("▁", "always")
    made.decoder = tokenizers.decoders.Metaspace("▁", "always")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>", chat_template=TEMPLATE
    )


def embeddings(rows) -> Embeddings:
    """Rows of numbers as a prompt."""
    return Embeddings(*rows.shape, rows.astype("<f4").tobytes())


def spec(folder: Path, **parameters: object):
    """The spec of a model in a folder, or of a GGUF file."""
    texts = {"threads": "1"} | {name: str(value) for name, value in parameters.items()}
    root, entry = (folder.parent, folder.name) if folder.suffix == ".gguf" else (folder, "")
    functions = FUNCTIONS if "enable_lora" in parameters else ()
    return replace(make_spec(), root=root, engine="hf", entry=entry, parameters=texts, functions=functions)


def kv_bytes(folder: Path, tokens: int) -> int:
    """The bytes of the keys and values of so many tokens of a model."""
    words, _ = ENGINE.facts(spec(folder)).details["memory"]
    found = re.search(r"(\d+) bytes for each token", words)
    assert found, words
    return int(found[1]) * tokens


class Steps:
    """An opened model, whose steps the test makes, and what it sent."""

    def __init__(self, folder: Path, engine=ENGINE, **parameters: object) -> None:
        self.parts: dict[int, list[Generated]] = {}
        self.ends: dict[int, Generated | ServeError] = {}
        self.reports = []
        self._woken = threading.Event()
        self._count = 0
        self.wake = self._woken.set
        self.runner = self.opened(replace(spec(folder, **parameters), engine=engine.name), engine)

    def opened(self, described, engine):
        """The instance that is played with."""
        return engine.open_steps(described, HERE, self)

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *_) -> None:
        self.runner.close()

    def offer(self, item, part):
        self.parts.setdefault(item, []).append(part)

    def end(self, item, part):
        assert item not in self.ends, "an item ends once"
        self.ends[item] = part

    def add(self, sampling=Sampling(), **fields) -> int:  # noqa: B008 - it is frozen
        """Add a request, and return its number."""
        self._count += 1
        self.runner.add(self._count, Infer("m", Generate(sampling=sampling, **fields)))
        return self._count

    def call(self, function: str, name: str, src: Path | str = "") -> None:
        """Have a function called, of those that manage adapters."""
        self.runner.call(function, payload(name, str(src)))

    def step(self):
        """Make one step that computes something, and return its report; None where all has ended."""
        for _ in range(100):
            self._woken.clear()
            report = self.runner.step()
            if report is not None:
                self.reports.append(report)
                return report
            state = self.runner.debug_state()
            if not state["unread"] and not state["requests"]:
                return None
            assert self._woken.wait(240), "nothing to compute, and nobody wakes it"
        raise AssertionError("it is woken for nothing")

    def run(self) -> None:
        """Step until all has ended."""
        while self.step() is not None:
            pass

    def settled(self, count: int) -> None:
        """Step until `count` items have ended."""
        while len(self.ends) < count and self.step() is not None:
            pass

    def answer(self, item) -> Generated:
        """The whole answer of an item."""
        end = self.ends[item]
        if isinstance(end, ServeError):
            raise end
        return joined([*self.parts.get(item, []), end])

    def answers(self, requests: Iterable[dict]) -> list[Generated]:
        """Add requests, step until all have ended, and return the answers."""
        items = [self.add(**request) for request in requests]
        self.run()
        return [self.answer(item) for item in items]


@cache
def _documentation() -> str:
    return "\n".join(topics[name] for name in sorted(topics))
