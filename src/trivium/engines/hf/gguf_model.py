"""Makes transformers' parts of a GGUF file that our own reader has read: configuration, tokenizer, named weights.

transformers reads such a file once for each of them, and each time in the slowest way. Its tables of names and its ways
of turning weights round are used as they are. What it computes of the head is computed here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from trivium.codecs.gguf import MERGES, SCORES, TOKEN_TYPES, TOKENS, GgufHead, GgufTensor, read_head
from trivium.engines.hf.library import gguf_blocks, libraries
from trivium.engines.hf.sizes import GGUF_CLASSES
from trivium.files import mapped_file

_LISTS = frozenset({TOKENS, MERGES, SCORES, TOKEN_TYPES})
_SPECIAL = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
"""Words of transformers and of the format for tokens with a role."""
_HEAD = "output.weight"


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A file of an architecture that is known here. `data` is the whole file, mapped."""

    head: GgufHead
    data: memoryview

    def config(self) -> Any:
        """Return the configuration, with the class's defaults for what such files do not say."""
        _, transformers = libraries()
        head, tables = self.head, _module("integrations.ggml").GGUF_CONFIG_MAPPING
        renamed = {f"{head.architecture}.{key}": to for key, to in tables[head.architecture].items()}
        renamed |= {f"tokenizer.{key}": to for key, to in tables["tokenizer"].items()}
        fields = {renamed[key]: value for key, value in head.metadata.items() if renamed.get(key)}
        fields.setdefault("vocab_size", len(self._list(TOKENS)))
        if head.architecture == "qwen3" and (size := head.number("attention.key_length")):
            fields.setdefault("head_dim", size)
        fields["tie_word_embeddings"] = all(tensor.name != _HEAD for tensor in head.tensors)
        fields["architectures"] = [GGUF_CLASSES[head.architecture]]
        kind = "gemma3_text" if head.architecture == "gemma3" else head.architecture
        return transformers.AutoConfig.for_model(kind, **fields)

    def tokenizer(self) -> Any:
        """Return the tokenizer of the file's own words. Raises whatever the library raises."""
        library = _module("integrations.gguf")
        found = self.head.metadata
        words, said = (
            {
                to: found[f"tokenizer.{key}"]
                for key, to in library.GGUF_TOKENIZER_MAPPING[part].items()
                if f"tokenizer.{key}" in found
            }
            for part in ("tokenizer", "tokenizer_config")
        )
        if (
            words.get("tokenizer_type") == "llama"
        ):  # whose texts begin with a token, unless a file says otherwise
            said.setdefault("add_bos_token", True)
        tokens = self._list(TOKENS)
        for name, role in _SPECIAL.items():
            number = found.get(f"tokenizer.ggml.{role}_token_id")
            said[f"{name}_token"] = tokens[number] if type(number) is int and number < len(tokens) else None
        backend, more = library.convert_gguf_tokenizer(self.head.architecture, words)
        kind = _module("tokenization_utils_tokenizers").TokenizersBackend
        return kind(tokenizer_object=backend, **said, **more)

    def weights(self, model: Any) -> Iterator[tuple[str, Any]]:
        """Give the weights as numbers of 32 bits, each by the name that it has in `model`."""
        from gguf import quants
        from gguf.constants import GGMLQuantizationType

        library = _module("modeling_gguf_pytorch_utils")
        names, shapes = self.names(model), model.state_dict()
        processor = library.TENSOR_PROCESSORS.get(self.head.architecture, library.TensorProcessor)(
            config=model.config.to_dict()
        )
        for tensor in self.head.tensors:
            if tensor.name in names:
                numbers = quants.dequantize(self._blocks(tensor), GGMLQuantizationType(tensor.kind))
                if not numbers.flags.writeable:  # it is the file itself
                    numbers = numbers.copy()
                made = processor.process(numbers.reshape(tensor.shape), tensor.name).weights
                wanted = tuple(shapes[names[tensor.name]].shape)
                if made.shape != wanted:
                    raise ValueError(
                        f"the tensor '{tensor.name}' is of {tensor.shape}, and the model's of {wanted}"
                    )
                yield names[tensor.name], made

    def names(self, model: Any) -> Mapping[str, str]:
        """Return the names of the file's tensors -> those of a model's weights."""
        from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

        architecture = next(one for one, name in MODEL_ARCH_NAMES.items() if name == self.head.architecture)
        known = get_tensor_name_map(architecture, model.config.num_hidden_layers)
        found = {}
        for name in model.state_dict():
            stem, point, end = name.rpartition(".")
            if ours := known.get_name(stem):
                found[f"{ours}{point}{end}"] = name
        return found

    def _blocks(self, tensor: GgufTensor) -> Any:
        """Return the bytes of a tensor, one row of it in each row."""
        import numpy as np

        data = np.frombuffer(self.data, np.uint8, tensor.size, tensor.start)
        return data.reshape(*tensor.shape[:-1], -1)

    def _list(self, key: str) -> list[str]:
        found = self.head.metadata.get(key)
        if not isinstance(found, list):
            raise ValueError(f"the file lacks {key}")
        return found


def open_gguf(path: Path) -> GgufModel | None:
    """Return the model of a file; None for an architecture that is transformers' to read, or where the installed one
    has other tables. Raises GgufFault and OSError.
    """
    data = mapped_file(path)
    head = read_head(data, gguf_blocks(), _LISTS)
    return GgufModel(head, data) if head.architecture in GGUF_CLASSES and _has_tables() else None


def _module(name: str) -> Any:
    """Return a module of transformers that says nothing of its types."""
    return import_module(f"transformers.{name}")


def _has_tables() -> bool:
    try:
        _module("integrations.ggml").GGUF_CONFIG_MAPPING  # noqa: B018 - is it there?
        _module("integrations.gguf").convert_gguf_tokenizer  # noqa: B018 - the same
    except (ImportError, AttributeError):
        return False
    return True
