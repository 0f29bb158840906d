"""What a library's own call costs, without a server: one row of 64 numbers, in a process by itself.

`python -m bench.bare_calls ENGINE FILE` prints processor microseconds per call.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = 0.7
Call = Callable[[], Any]
ROW = np.full((1, 64), 0.5, np.float32)


def onnx(path: Path) -> Call:
    """A session of ONNX Runtime with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": ROW})


def torch(path: Path) -> Call:
    """A TorchScript module without gradients."""
    import torch as library

    library.set_num_threads(1)
    module, row = library.jit.load(str(path)), library.from_numpy(ROW)
    with library.inference_mode():
        module(row)

    def call() -> Any:
        with library.inference_mode():
            return module(row).numpy()

    return call


def openvino(path: Path) -> Call:
    """A compiled model with one thread."""
    import openvino as library

    compiled = library.Core().compile_model(str(path), "CPU", {"INFERENCE_NUM_THREADS": 1})
    return lambda: compiled([ROW])


def paddle(path: Path) -> Call:
    """A predictor with its own handles."""
    from paddle import inference

    config = inference.Config(str(path), str(path.with_suffix(".pdiparams")))
    config.set_cpu_math_library_num_threads(1)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    given = predictor.get_input_handle(predictor.get_input_names()[0])
    found = predictor.get_output_handle(predictor.get_output_names()[0])

    def call() -> Any:
        given.copy_from_cpu(ROW)
        predictor.run()
        return found.copy_to_cpu()

    return call


def tensorflow(path: Path) -> Call:
    """The signature of a SavedModel."""
    import tensorflow as library

    library.config.threading.set_intra_op_parallelism_threads(1)
    library.config.threading.set_inter_op_parallelism_threads(1)
    model = library.saved_model.load(str(path))
    sign, row = model.signatures["serving_default"], library.constant(ROW)
    return lambda: {name: one.numpy() for name, one in sign(pixels=row).items()}


def xgboost(path: Path) -> Call:
    """Probabilities by the estimator."""
    import xgboost as library

    model = library.XGBClassifier(n_jobs=1)
    model.load_model(path)
    model.set_params(n_jobs=1)
    return lambda: model.predict_proba(ROW)


def lightgbm(path: Path) -> Call:
    """Probabilities by the booster."""
    import lightgbm as library

    model = library.Booster(model_file=str(path))
    return lambda: model.predict(ROW, num_threads=1)


def sklearn(path: Path) -> Call:
    """Classes and probabilities by the forest, which are what its model answers here."""
    from skops import io
    from tests.harness.table_models import TREE

    model = io.load(path, trusted=[TREE])
    return lambda: (model.predict(ROW), model.predict_proba(ROW))


CALLS = {one.__name__: one for one in (onnx, torch, openvino, paddle, tensorflow, xgboost, lightgbm, sklearn)}


def main() -> None:
    """Warm up, and measure."""
    engine, path = sys.argv[1:]
    call = CALLS[engine](Path(path))
    for _ in range(20):
        call()
    count, began, before = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < SECONDS:
        call()
        count += 1
    print((time.process_time() - before) / count * 1e6)


if __name__ == "__main__":
    main()
