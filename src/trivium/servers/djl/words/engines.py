"""The engines of DJL: one row says how an engine is named, recognised and configured, and which of ours serves it.

Source: spec sheet `djl`, sections 2.5 and 3.1 to 3.3. A further engine is a row here and a folder in `trivium/engines`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trivium.servers.djl.words import keys
from trivium.servers.djl.words.language_model_keys import LANGUAGE_MODEL as LANGUAGE_MODEL_KEYS
from trivium.servers.djl.words.task_model_keys import TASK_MODEL as TASK_MODEL_KEYS
from trivium.servers.djl.words.vllm_options import VLLM_MODEL as VLLM_MODEL_KEYS
from trivium.settings.setting import Setting, Support
from trivium.types.extra_files import EXTRA_FILES
from trivium.types.text_engines import OPENVINO
from trivium.types.unserved import UNSERVED
from trivium_worker.estimators import FORMATS, PICKLES, SKOPS

_SWITCH = {"true": "1", "false": "0"}
_SWITCH_WORDS = {"true": "true", "false": "false"}
_EXPORT = "Export the model to ONNX or TorchScript, or run it in a model.py."


@dataclass(frozen=True, slots=True)
class EngineOption:
    """An option that becomes a parameter of our engine: one of `choices`; where there are none a number, or a
    text if the key has no form. `judging` says what a value may be. Without the key `default` holds, since DJL's is
    not our engine's; an empty one leaves that to the engine.
    """

    key: str
    parameter: str
    choices: Mapping[str, str] = field(default_factory=dict)
    default: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class DjlEngine:
    """An engine of DJL. `engine` is ours that serves it, empty where none does: then `way_out` says what to do.

    `spellings` are further names in serving.properties, and what is reported of them, if anything. A file named after
    the folder or `model` with one of `suffixes`, or a file of `files`, is a model of the engine; one that ends in a key
    of `beside` only where the file that ends in its value is there as well. A file with a key of
    `built_in` needs that handler of DJL's own, of which ours has `SKLEARN_HANDLER`. An engine that `generates` serves
    language models, without a handler, and one that `passes_options` gets those that nobody knows; one that
    `answers_bodies` serves models of texts so, by whole calls. `unknown`
    says what a key without a row is, where nobody takes it.
    """

    name: str
    suffixes: tuple[str, ...] = ()
    engine: str = ""
    files: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    built_in: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Setting] = field(default_factory=dict)
    options: tuple[EngineOption, ...] = ()
    runs_handlers: bool = False
    generates: bool = False
    passes_options: bool = False
    answers_bodies: bool = False
    way_out: str = _EXPORT
    unknown: str = "an argument for a translator, and there is none"


_RANKS = "its processes are started without mpirun"
ESTIMATORS = (*FORMATS[SKOPS], *PICKLES)
"""Ends of the files that DJL serves by its handler for scikit-learn."""

SKLEARN_HANDLER = "djl_python.sklearn_handler"

PYTHON = DjlEngine(
    "Python",
    (".py",),
    "python-djl",
    spellings={"MPI": _RANKS, "DeepSpeed": _RANKS},
    built_in=dict.fromkeys(ESTIMATORS, SKLEARN_HANDLER),
    keys=keys.PYTHON,
    runs_handlers=True,
)
PYTORCH = DjlEngine(
    "PyTorch",
    (".pt",),
    "torch",
    keys=keys.PYTORCH,
    options=(EngineOption("option.extraFiles", EXTRA_FILES),),
)
ONNX = DjlEngine(
    "OnnxRuntime",
    (".onnx",),
    "onnx",
    spellings={"onnx": ""},
    keys=keys.ONNX,
    options=(
        EngineOption("option.intraOpNumThreads", "intra_op_thread_count", default="1"),
        EngineOption("option.interOpNumThreads", "inter_op_thread_count", default="1"),
        EngineOption("option.executionMode", "execution_mode", {"sequential": "0", "parallel": "1"}),
        EngineOption(
            "option.optLevel",
            "graph_level",
            {"no_opt": "2", "basic_opt": "-1", "extended_opt": "1", "all_opt": "0"},
        ),
        EngineOption("option.memoryPatternOptimization", "enable_mem_pattern", _SWITCH),
        EngineOption("option.cpuArenaAllocator", "enable_mem_arena", _SWITCH),
        EngineOption("option.profilerOutput", "profile_output"),
    ),
)
LANGUAGE_MODEL = DjlEngine(
    "hf",
    engine="hf",
    keys=LANGUAGE_MODEL_KEYS,
    generates=True,
    unknown="no option of language models in this version",
)
"""Serves the folders that DJL serves by its own handlers for language models; no folder names it by `engine`."""

VLLM_MODEL = DjlEngine("vllm", engine="vllm", keys=VLLM_MODEL_KEYS, generates=True, passes_options=True)
"""The same, where vLLM serves them: an option without a row is an argument of its own."""

OPENVINO_MODEL = replace(LANGUAGE_MODEL, engine=OPENVINO)
"""Serves those of them whose weights are OpenVINO's: the folder decides, since no option of DJL names it."""

TASK_MODEL = DjlEngine(
    "hf-tasks",
    engine="hf-tasks",
    keys=TASK_MODEL_KEYS,
    answers_bodies=True,
    unknown="no option of models of texts in this version",
)
"""Serves what DJL serves by transformers' pipelines: static batches of one task."""

SYMBOL = "-symbol.json"
"""How the names of MXNet's graphs end."""

MXNET = DjlEngine(
    "MXNet",
    (SYMBOL,),
    "mxnet",
    keys=keys.MXNET,
    options=(
        EngineOption("option.epoch", "epoch"),
        EngineOption("option.hasParameter", "has_parameters", {"true": "true", "false": "false"}),
    ),
)

ENGINES = (
    PYTHON,
    PYTORCH,
    ONNX,
    DjlEngine(
        "PaddlePaddle",
        (".pdmodel", ".json"),
        "paddle",
        files=("inference.pdmodel", "inference.json", "__model__"),
        beside={".json": ".pdiparams"},
        keys=keys.PADDLE,
        options=(
            EngineOption("option.CMLNumThreads", "threads", default="1"),
            EngineOption("option.enableMKLDNN", "onednn", _SWITCH_WORDS),
            EngineOption("option.SwitchIrOptim", "ir_optim", _SWITCH_WORDS),
            EngineOption("option.removePass", "delete_pass"),
        ),
    ),
    DjlEngine(
        "XGBoost",
        (".json", ".xgb", ".bst", ".ubj"),
        "xgboost",
        keys=keys.XGBOOST,
        options=(
            EngineOption(
                "option.Mode",
                "answer",
                {
                    "default": "values",
                    "output_margin": "margin",
                    "leaf": "leaves",
                    "contrib": "contributions",
                },
                "values",
            ),
            EngineOption("option.TreeLimit", "tree_limit", default="0"),
        ),
    ),
    DjlEngine(
        "Llama",
        (".gguf",),
        way_out="Write option.rolling_batch=auto in place of engine.",
    ),
    DjlEngine(
        "TensorFlow",
        (),
        "tensorflow",
        files=("saved_model.pb",),
        keys=keys.TENSORFLOW,
        options=(
            EngineOption("option.Tags", "tags"),
            EngineOption("option.SignatureDefKey", "signature"),
        ),
    ),
    MXNET,
    DjlEngine(
        "LightGBM",
        (".txt",),
        "lightgbm",
        keys=keys.LIGHTGBM,
        options=(
            EngineOption(
                "option.inference_type",
                "answer",
                {
                    "normal": "values",
                    "raw_score": "margin",
                    "leaf_index": "leaves",
                    "contrib": "contributions",
                },
                "values",
            ),
        ),
    ),
    DjlEngine("Rust"),
    DjlEngine("TritonServer"),
    *(
        DjlEngine(row.library, row.suffixes, spellings=dict.fromkeys(row.names, ""), way_out=row.way_out)
        for row in UNSERVED
    ),
)
"""Every engine of DJL, in the order in which a folder's files are tried for them."""

NAMES: Mapping[str, tuple[DjlEngine, str]] = {
    name.lower(): (engine, report)
    for engine in ENGINES
    for name, report in ({engine.name: ""} | dict(engine.spellings)).items()
}
"""A name in serving.properties, in lower case -> the engine, and what is reported of the name."""

SPELLINGS = tuple(name for engine in ENGINES for name in (engine.name, *engine.spellings))
"""All names that `engine` may have, for the sentence about one that it may not have."""


def served_names() -> str:
    """Return the names of the engines that are served, as in "A, B or C"."""
    *names, last = [engine.name for engine in ENGINES if engine.engine]
    return f"{', '.join(names)} or {last}"


UNDECIDED = DjlEngine("", keys=keys.EVERY, runs_handlers=True)
"""Stands for the engine of a folder that has none that is served: its other settings are judged all the same."""


def _of_another(engine: DjlEngine, key: str) -> str:
    """Say whose key it is, if it is one of other engines; empty else."""
    owners = [each.name for each in ENGINES if key in each.keys and each is not engine]
    if key in LANGUAGE_MODEL.keys and engine not in (LANGUAGE_MODEL, VLLM_MODEL):
        owners.append("language models")
    runs = "is a language model" if engine.generates or engine.answers_bodies else f"runs on {engine.name}"
    return f"an option of {' and '.join(owners)}; this model {runs}" if owners else ""


def row_of(engine: DjlEngine, key: str, translates: bool = False) -> Setting:
    """Return the key's row, or that of all keys without one, which are arguments of the handler, or of the model's
    translator if it has one.
    """
    row = engine.keys.get(key)
    if row is None:
        is_option = key.startswith("option.")
        is_taken = engine.runs_handlers or (engine.passes_options if is_option else translates)
        row = Setting(key, support=Support.PASSED_ON)
        if not is_taken:
            row = Setting(key, support=Support.REPORTED, how=_of_another(engine, key) or engine.unknown)
    return row
