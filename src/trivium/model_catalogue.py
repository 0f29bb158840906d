"""The one list of what reads, completes and runs models: engines, formats, translators and fetchers.

Adding one is a file in its folder and a row here. A row is imported when it is first asked for: a program that asks an
engine about a model, or hosts one, needs no other, and `trivium check` no server.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from trivium.examination import ModelCatalogue
from trivium.fetchers.gate import file_gate
from trivium.fetchers.http import FETCHER as WEB
from trivium.fetchers.hub import FETCHER as HUB
from trivium.fetchers.s3 import FETCHER as S3
from trivium.formats.bare import FORMAT as BARE
from trivium.formats.bare import LONE, LONE_TABLE
from trivium.machine.python_commands import own_module
from trivium.types.interfaces import Engine, Fetcher, FindEngine, Format, TranslatorKind
from trivium.types.lazy_tables import LazyList, LazyTable, LazyWhole, lazily
from trivium.types.payload import PayloadKind
from trivium.types.spec import ModelSpec

if TYPE_CHECKING:
    from trivium.engines.python import PythonEngine

_TENSORS = frozenset({PayloadKind.TENSORS})
_BOTH = _TENSORS | {PayloadKind.RAW}


def _djl_python() -> Engine:
    from trivium.servers.djl.wire.calls import LmiCall
    from trivium.servers.djl.words.metric_lines import read_metric

    takes = _BOTH | {PayloadKind.LISTED}
    return _python()("djl", takes, read_metric=read_metric, open_form=LmiCall)


def _torchserve_python() -> Engine:
    return _python()("torchserve", _BOTH)


def _triton_python() -> Engine:
    from trivium.servers.triton.words.call_texts import translate_error

    return _python()("triton", _TENSORS, words=translate_error)


def _typed_python() -> Engine:
    return _python()("typed", _BOTH)


def _mlflow_python() -> Engine:
    from trivium.engines.python import FunctionEngine

    return FunctionEngine("mlflow", _BOTH, **_python().keywords)


def _mxnet() -> Engine:
    from trivium.engines.mxnet.engine import MxnetEngine

    return MxnetEngine(os.environ)


@cache
def _python() -> "partial[PythonEngine]":
    from trivium.engines.python import PythonEngine
    from trivium.environments.store import EnvironmentStore
    from trivium.machine.user_cache import user_cache
    from trivium_worker.wire.owned import COMPILE_CACHE

    cache = {COMPILE_CACHE: str(user_cache(os.environ, "compiled"))}
    environment = {**cache, **os.environ}
    return partial(
        PythonEngine, interpreter=sys.executable, environment=environment, store=EnvironmentStore()
    )


def _torchserve() -> Format:
    from trivium.servers.torchserve.archive.repository import made

    return made(os.environ)


def _djl() -> Format:
    from trivium.servers.djl.folder.repository import made

    return made(os.environ)


def _translators() -> Mapping[str, TranslatorKind]:
    from trivium.translators.kinds import kinds

    return kinds(file_gate(_FETCHERS, seconds=30.0))


def _find_engine(spec: ModelSpec) -> Engine:
    return _finder()(spec)


@cache
def _finder() -> FindEngine:
    from trivium.translators.engine import engine_finder

    return engine_finder(_ENGINE_TABLE, _TRANSLATORS)


_FETCHERS: Sequence[Fetcher] = (
    WEB,
    S3,
    HUB,
)
_ENGINES: dict[str, Callable[[], Engine]] = {
    "onnx": lazily("trivium.engines.onnx.engine:ENGINE"),
    "torch": lazily("trivium.engines.torch.engine:ENGINE"),
    "hf": lazily("trivium.engines.hf.engine:ENGINE"),
    "vllm": lazily("trivium.engines.hf.vllm.engine:ENGINE"),
    "openvino-llm": lazily("trivium.engines.hf.genai.engine:ENGINE"),
    "hf-tasks": lazily("trivium.engines.hf.tasks.engine:ENGINE"),
    "sklearn": lazily("trivium.engines.tabular.sklearn_files:ENGINE"),
    "xgboost": lazily("trivium.engines.tabular.xgboost_files:ENGINE"),
    "lightgbm": lazily("trivium.engines.tabular.lightgbm_files:ENGINE"),
    "openvino": lazily("trivium.engines.graphs.openvino_files:ENGINE"),
    "paddle": lazily("trivium.engines.graphs.paddle_files:ENGINE"),
    "tensorflow": lazily("trivium.engines.graphs.saved_models:ENGINE"),
    "mxnet": _mxnet,
    "identity": lazily("trivium.engines.identity:ENGINE"),
    "python-djl": _djl_python,
    "python-mlflow": _mlflow_python,
    "python-torchserve": _torchserve_python,
    "python-triton": _triton_python,
    "python-typed": _typed_python,
}
_FORMATS: tuple[Callable[[], Format], ...] = (
    lambda: BARE,
    lazily("trivium.formats.mlflow.repository:FORMAT"),
    lazily("trivium.servers.triton.repository.repository:FORMAT"),
    _torchserve,
    lazily("trivium.formats.huggingface.repository:FORMAT"),
    lambda: LONE_TABLE,
    _djl,
    lazily("trivium.formats.typed:FORMAT"),
    lambda: LONE,
)
_ENGINE_TABLE = LazyTable(_ENGINES)
_TRANSLATORS = LazyWhole(_translators)

MODELS = ModelCatalogue(
    engines=_ENGINE_TABLE,
    find_engine=_find_engine,
    formats=LazyList(*_FORMATS),
    translators=_TRANSLATORS,
    fetchers=_FETCHERS,
    probe=own_module("trivium.cli.probe"),
)
