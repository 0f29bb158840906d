"""Runs a model of MXNet: arrays of requests into the graph of its symbol, and the graph's outputs back.

The graph is called as MXNet's own blocks call theirs, by a CachedOp, which takes any shapes. Requests that fit are run
as one batch. Needs numpy and mxnet.
"""

import os
import re
from typing import Any

from trivium_worker.runtime.adapter import Adapter, Host, Setup
from trivium_worker.wire.values import NUMPY_TYPES, Failure, Item, Outcome, Tensor

_ROWS = "rows"
_MOST_SHAPES = 256
"""Shapes of inputs for which those of what nobody sends are kept."""


class MxnetAdapter(Adapter):
    """One instance. `settings` has the names and datatypes of inputs, the names of outputs, the parameter file, and how
    items share a run: "rows", "stack", "pad", or empty where each runs alone.
    """

    def __init__(self, setup: Setup, host: Host) -> None:
        """Raises Failure ("load failed") with what MXNet says of the files."""
        self._model = setup.model
        self._outputs: list[str] = setup.settings["outputs"]
        self._batch: str = setup.settings["batch"]
        symbol = os.path.join(setup.root, setup.entry)
        params = setup.settings["parameters"] and os.path.join(setup.root, setup.settings["parameters"])
        try:
            import mxnet
            import numpy

            context = _context(mxnet, setup, host)
            self._graph = _Graph(mxnet, context, symbol, params, dict(setup.settings["inputs"]))
        except Exception as error:
            files = f"{symbol} with {params}" if params else symbol
            words = f"Model '{setup.model}': the engine mxnet cannot open {files}: {_said(error)}"
            raise Failure(words, "load failed") from error
        self._numpy = numpy

    def run(self, items: list[Item]) -> list[Outcome]:
        """Return an outcome per item. Where a batch fails each item runs alone: one that does not fit fails alone."""
        arrays = [self._arrays(item) for item in items]
        good = [one for one in arrays if not isinstance(one, Failure)]
        if self._batch and len(good) > 1 and _fit(good, self._batch == _ROWS):
            try:
                answers = iter(self._together(good))
                return [one if isinstance(one, Failure) else next(answers) for one in arrays]
            except Exception:
                pass
        return [one if isinstance(one, Failure) else self._alone(one) for one in arrays]

    def _alone(self, arrays: dict[str, Any]) -> Outcome:
        is_stacked = self._batch not in ("", _ROWS)
        try:
            given = {name: array[None] for name, array in arrays.items()} if is_stacked else arrays
            results = self._graph.call(given)
            return self._tensors([one[0] for one in results] if is_stacked else results)
        except Exception as error:
            return failure_of(error, self._model)

    def _together(self, items: list[dict[str, Any]]) -> list[Outcome]:
        numpy, by_rows = self._numpy, self._batch == _ROWS
        join = numpy.concatenate if by_rows else numpy.stack
        results = self._graph.call({name: join([one[name] for one in items]) for name in items[0]})
        counts = [len(next(iter(one.values()))) if by_rows else 1 for one in items]
        if any(one.shape[:1] != (sum(counts),) for one in results):
            raise ValueError("an output has not a row for each row of the input")
        ends = numpy.cumsum(counts)
        slices = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
        return [self._tensors([one[rows] if by_rows else one[rows][0] for one in results]) for rows in slices]

    def _arrays(self, item: Item) -> Any:
        """Return the arrays of an item by name, in the datatypes of the model; or why there are none, a Failure."""
        assert isinstance(item.payload, list), "the engine takes tensors"
        found = {}
        for tensor in item.payload:
            wanted = NUMPY_TYPES[self._graph.inputs[tensor.name]]
            if tensor.datatype in ("BYTES", "BF16"):
                words = f"input '{tensor.name}' is {tensor.datatype}, which MXNet does not take"
                return Failure(f"Model '{self._model}': {words}.", "invalid")
            array = tensor.array()
            if not self._numpy.can_cast(array.dtype, wanted, "same_kind"):
                words = f"input '{tensor.name}' is {tensor.datatype}; send {self._graph.inputs[tensor.name]}"
                return Failure(f"Model '{self._model}': {words}.", "invalid")
            found[tensor.name] = array.astype(wanted, copy=False)
        return found

    def _tensors(self, arrays: list[Any]) -> list[Tensor]:
        return [Tensor.of_array(name, array) for name, array in zip(self._outputs, arrays, strict=True)]


class _Graph:
    """A symbol with its parameters on one device. `inputs` are those that clients send; what else has no parameter, as
    the labels that a loss compares with, is zeros.
    """

    def __init__(self, mxnet: Any, context: Any, symbol: str, params: str, inputs: dict[str, str]) -> None:
        self.inputs = inputs
        self._mxnet = mxnet
        self._context = context
        self._symbol = mxnet.sym.load(symbol)
        self._names: list[str] = self._symbol.list_inputs()
        self._arguments: list[str] = self._symbol.list_arguments()
        given = mxnet.nd.load(params) if params else {}
        self._params = {name.split(":", 1)[-1]: array.as_in_context(context) for name, array in given.items()}
        for array in self._params.values():
            array.wait_to_read()
        self._left = [one for one in self._names if one not in self._params and one not in inputs]
        self._call = mxnet.nd.CachedOp(self._symbol)
        self._shapes: dict[Any, dict[str, Any]] = {}

    def call(self, arrays: dict[str, Any]) -> list[Any]:
        """Run it, and return its outputs as arrays of numpy, in the order of its heads. Raises what MXNet raises."""
        nd = self._mxnet.nd
        given = {
            name: nd.array(array, ctx=self._context, dtype=array.dtype) for name, array in arrays.items()
        }
        if self._left:
            given.update(self._zeros(arrays))
        params = self._params
        results = self._call(*[params[name] if name in params else given[name] for name in self._names])
        return [one.asnumpy() for one in (results if isinstance(results, (list, tuple)) else [results])]

    def _zeros(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return zeros for what nobody sends, in the shapes that follow from those of the inputs."""
        shapes = {name: array.shape for name, array in arrays.items()}
        key = tuple(shapes.items())
        if key not in self._shapes:
            found, _, _ = self._symbol.infer_shape_partial(**shapes)
            told = dict(zip(self._arguments, found or (), strict=False))
            rows = next(iter(shapes.values()))[:1]
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            zeros = self._mxnet.nd.zeros
            self._shapes[key] = {
                name: zeros(told.get(name) or rows, ctx=self._context) for name in self._left
            }
        return self._shapes[key]


def _context(mxnet: Any, setup: Setup, host: Host) -> Any:
    """Return the device of an instance: the CPU, too, where this build of MXNet sees no GPU."""
    if setup.device != "gpu":
        return mxnet.cpu()
    if setup.device_id < mxnet.context.num_gpus():
        return mxnet.gpu(setup.device_id)
    host.log(
        "warning",
        f"MXNet {mxnet.__version__} sees no GPU {setup.device_id}: {setup.instance} runs on the CPU",
    )
    return mxnet.cpu()


def _fit(items: list[dict[str, Any]], by_rows: bool) -> bool:
    """Tell whether arrays can be put together: equal names and datatypes, and shapes but for the rows."""
    first = 1 if by_rows else 0
    forms = [{name: (array.dtype, array.shape[first:]) for name, array in one.items()} for one in items]
    if by_rows and any(array.ndim == 0 for one in items for array in one.values()):
        return False
    return all(form == forms[0] for form in forms)


def failure_of(error: Exception, model: str) -> Failure:
    """Return what a run ended with: an input's fault where MXNet says that shapes or datatypes do not fit."""
    text = str(error)
    code = "out of memory" if isinstance(error, MemoryError) else "model failed"
    if type(error).__name__ == "MXNetError" and re.search("[Ii]nfer|[Ss]hape|dtype", text):
        code = "invalid"
    return Failure(f"Model '{model}': MXNet did not run it: {_said(error)}", code)


def _said(error: BaseException) -> str:
    """Return the first words of an error: MXNet's have its own stack behind them."""
    text = str(error) or type(error).__name__
    lines = [line.strip() for line in text.partition("Stack trace")[0].splitlines() if line.strip()]
    return " ".join(lines)[:800] or text[:800]
