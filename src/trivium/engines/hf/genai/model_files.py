"""Looks at a model's files before OpenVINO opens them: a folder that `optimum-cli export openvino` wrote, or a GGUF.

What they say of sizes, and whether they can be served. The errors name file and engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trivium.codecs.gguf import GgufFault, GgufHead
from trivium.codecs.gguf import read_head as read_gguf
from trivium.engines.hf.folder import CONFIG, Checkpoint, architecture, read_json, unfit
from trivium.engines.hf.genai.graph_file import EMBEDS, IDS, GraphFacts, GraphFault, read_graph
from trivium.engines.hf.genai.options import NAME
from trivium.engines.hf.library import gguf_blocks
from trivium.engines.hf.sizes import ModelSizes, config_sizes, gguf_sizes
from trivium.files import mapped_file
from trivium.types.errors import Code, ServeError
from trivium.types.spec import ModelSpec

GRAPH, WEIGHTS = "openvino_model.xml", "openvino_model.bin"
_MOST_GRAPH = 2**28
_EXPORT = "Export the model with: trivium pack --to openvino FOLDER"
_GGUF_KINDS = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 8: "Q8_0", 12: "Q4_K", 14: "Q6_K"}
"""Types of tensors that OpenVINO GenAI reads, by their number in the format."""
_GGUF_ARCHITECTURES = ("llama", "qwen2", "qwen3")
_GGUF_KEYS = (
    *("block_count", "attention.head_count", "embedding_length"),
    "attention.layer_norm_rms_epsilon",
)
_WORDS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model", "tekken.json", "vocab.txt")
_LENGTHS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
_OWN_SCALING = frozenset({"dynamic", "longrope", "su", "yarn"})


@dataclass(frozen=True, slots=True)
class GenaiFiles:
    """A model's files: its folder and configuration, its sizes, the bytes of its weights, and, of a GGUF file, its
    head.
    """

    checkpoint: Checkpoint
    sizes: ModelSizes
    weights: int
    head: GgufHead | None = None

    @property
    def opened(self) -> Path:
        """Return what OpenVINO is given: the folder, or the file."""
        found = self.checkpoint
        return found.folder / found.gguf if found.gguf else found.folder

    @property
    def source(self) -> str:
        """Return the name of the file that says the sizes."""
        return self.checkpoint.gguf or GRAPH


def model_files(spec: ModelSpec) -> GenaiFiles:
    """Return what lies at a spec's entry. LOAD_FAILED, or UNSUPPORTED, for what cannot be served."""
    path = spec.root / spec.entry
    if path.suffix.lower() == ".gguf":
        return _gguf(spec, path)
    folder = path if path.is_dir() else path.parent
    config = read_json(spec, folder / CONFIG)
    graph = _graph(spec, folder / GRAPH)
    weights = _size(spec, folder / WEIGHTS)
    if not weights:
        raise damaged(spec, folder / WEIGHTS, "it is empty")
    if not any((folder / name).is_file() for name in _WORDS):
        words = f"there is no tokenizer in {folder}, which the engine '{NAME}' needs ({_WORDS[0]}, or an older form)"
        raise unfit(spec, f"{words}. Copy it from the model that was converted.")
    sizes = _sizes(spec, config, graph)
    return GenaiFiles(Checkpoint(folder, config=config), sizes, weights)


def damaged(spec: ModelSpec, path: Path, found: str) -> ServeError:
    """Return the error of a file that is not what it should be."""
    return unfit(
        spec, f"{path} cannot be served by the engine '{NAME}': {found}. {_EXPORT}, or copy it again."
    )


def _graph(spec: ModelSpec, path: Path) -> GraphFacts:
    if not path.is_file():
        raise unfit(spec, f"there is no {path}, which the engine '{NAME}' opens. {_EXPORT}.")
    if _size(spec, path) > _MOST_GRAPH:
        raise damaged(spec, path, f"it has more than {_MOST_GRAPH} bytes")
    try:
        graph = read_graph(path.read_bytes())
    except OSError as error:
        raise unfit(spec, f"{path} cannot be read: {error.strerror}.") from error
    except GraphFault as error:
        raise damaged(spec, path, str(error)) from error
    if EMBEDS in graph.inputs:
        words = f"its input is '{EMBEDS}': it is the language part of a model of pictures and texts"
        raise unfit(spec, f"{path}: {words}, which the engine '{NAME}' does not serve.", Code.UNSUPPORTED)
    if IDS not in graph.inputs:
        found = ", ".join(sorted(graph.inputs)[:5]) or "none"
        raise damaged(spec, path, f"it is no language model: its inputs are {found}, and '{IDS}' is expected")
    if not graph.states or not graph.cached:
        words = (
            "it keeps no keys and values (it was exported without its past, or for a version before 2023.3)"
        )
        raise damaged(spec, path, words)
    return graph


def _size(spec: ModelSpec, path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        words = f"{path}, which the engine '{NAME}' needs, cannot be read: {error.strerror}"
        raise unfit(spec, f"{words}. {_EXPORT}, or copy it again.") from error


def _sizes(spec: ModelSpec, config: Mapping[str, object], graph: GraphFacts) -> ModelSizes:
    """Return the sizes: what the graph keeps and tells is its own to say, the context config.json's."""
    try:
        said = config_sizes(config)
    except (TypeError, ValueError) as error:
        raise unfit(spec, f"{CONFIG} has a size that is none: {error}.") from error
    text = config.get("text_config")
    text = text if isinstance(text, Mapping) else config
    vocabulary = graph.vocabulary or _whole(text.get("vocab_size"))
    if not vocabulary:
        raise unfit(spec, f"neither {GRAPH} nor {CONFIG} says how many tokens the model has ('vocab_size').")
    context = _context(text) if said is None else said.context
    width = _whole(text.get("hidden_size"))
    return ModelSizes(architecture(config) or "not named", context, graph.cached, width, vocabulary)


def _context(text: Mapping[str, object]) -> int | None:
    """Return how many tokens a model knows; of scaled positions those that it was trained with, since a longer sequence
    would change others.
    """
    known = next((found for name in _LENGTHS if (found := _whole(text.get(name)))), 0)
    scaling = text.get("rope_parameters") or text.get("rope_scaling")
    if isinstance(scaling, Mapping) and scaling.get("rope_type", scaling.get("type")) in _OWN_SCALING:
        name = "original_max_position_embeddings"
        original = _whole(scaling.get(name)) or _whole(text.get(name))
        known = min(original, known or original) if original else known
    return known or None


def _whole(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _gguf(spec: ModelSpec, path: Path) -> GenaiFiles:
    try:
        data = mapped_file(path)
        head = read_gguf(data, gguf_blocks(NAME))
    except OSError as error:
        raise unfit(spec, f"{path} cannot be read: {error.strerror}.") from error
    except GgufFault as error:
        words = (
            f"{path} is no whole GGUF file, and the engine '{NAME}' cannot open it: {error}. Copy it again."
        )
        raise unfit(spec, words) from error
    _judge_gguf(spec, path, head)
    try:
        sizes = gguf_sizes(head)
    except ValueError as error:
        raise unfit(spec, f"{path} contradicts itself ({NAME}): {error}.") from error
    assert sizes is not None, "its architecture is one of those that are known"
    return GenaiFiles(Checkpoint(path.parent, gguf=path.name), sizes, len(data), head)


def _judge_gguf(spec: ModelSpec, path: Path, head: GgufHead) -> None:
    """Raise for a file that OpenVINO GenAI does not read; it would say so in words that name no file."""
    way = (
        "Serve it with --text-engine hf, or export the original model with: trivium pack --to openvino FOLDER"
    )
    if head.architecture not in _GGUF_ARCHITECTURES:
        words = f"{path} is of the architecture '{head.architecture[:40]}'"
        expected = ", ".join(_GGUF_ARCHITECTURES)
        raise unfit(spec, f"{words}; the engine '{NAME}' reads {expected}. {way}.", Code.UNSUPPORTED)
    for tensor in head.tensors:
        if tensor.kind not in _GGUF_KINDS or (tensor.kind == 0 and len(tensor.shape) > 1):
            kinds = ", ".join(name for kind, name in _GGUF_KINDS.items() if kind)
            words = f"{path}: the tensor '{tensor.name}' is kept as {_kind(tensor.kind)}"
            raise unfit(spec, f"{words}; the engine '{NAME}' reads {kinds}. {way}.", Code.UNSUPPORTED)
    missing = [key for key in _GGUF_KEYS if f"{head.architecture}.{key}" not in head.metadata]
    if missing:
        raise unfit(
            spec, f"{path} lacks {head.architecture}.{missing[0]}, which the engine '{NAME}' needs. {way}."
        )
    if type(head.metadata.get("general.file_type")) is not int:
        words = f"{path} lacks general.file_type, a whole number, which the engine '{NAME}' needs"
        raise unfit(spec, f"{words}. Convert it anew with llama.cpp's converter. {way}.")


def _kind(number: int) -> str:
    from gguf.constants import GGMLQuantizationType

    try:
        return str(GGMLQuantizationType(number).name)
    except ValueError:
        return f"type {number}"
