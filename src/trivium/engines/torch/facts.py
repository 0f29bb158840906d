"""Reads what a TorchScript file says of its inputs and outputs: all, if it was traced; their names, if scripted.

A traced file keeps the example inputs that it was traced with: their datatypes and shapes. Its outputs are found
by running it on zeros, twice with different first dimensions, which also shows whether that is a batch. Called
in a probe process only, where a hostile file may do what it likes.
"""

from typing import Any

from trivium.codecs.torch_archive import FOLDER, names_of
from trivium.engines.torch.archives import ArchiveKind
from trivium.engines.torch.arrays import datatype_of
from trivium.engines.torch.call import Argument, arguments_of, choose, flatten
from trivium.engines.torch.exported_facts import exported_facts
from trivium.engines.torch.module_file import look_into
from trivium.engines.torch.open_tensors import open_inputs, open_outputs
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.extra_files import EXTRA_FILES
from trivium.types.spec import ModelFacts, ModelSpec, TensorSpec

SCRIPTED = (
    "the file tells its inputs by name alone: TorchScript that was scripted, or traced without its example inputs, "
    "knows neither datatypes nor shapes; they are those of each request"
)
NO_TENSORS = "the file does not tell its inputs as tensors: forward takes {}"
_TRACED_ON = "the shapes are those that it was traced with; its outputs were found by running it on zeros"
COMPILED = "the file does not tell its inputs: a package of AOTInductor has arguments without names"
_NO_RUN = "it could not be run on zeros, so that its outputs are not known: {}"

_MOST_NAMES = 9  # of the extra files that a note lists
_Shapes = list[tuple[int, ...]]


def facts(torch: Any, spec: ModelSpec, notes: tuple[str, ...]) -> ModelFacts:
    """Inputs by the names of the arguments of `forward`, outputs as `OUTPUT__0` and so on, or by their keys; open ones
    where the file tells no more, and none where it does not tell that either, as a note says. Raises LOAD_FAILED for
    what is no model file.
    """
    path = spec.root / spec.entry
    kind, names = look_into(torch, spec, path)
    notes = (*notes, *_lacking(spec, names))
    if kind is ArchiveKind.COMPILED:
        return ModelFacts((), (), False, notes, remarks=(COMPILED,))
    if kind is ArchiveKind.EXPORTED:
        return exported_facts(torch, spec, notes)
    is_traced = "traced_inputs.pkl" in names
    try:
        module = torch.jit.load(str(path), map_location="cpu", _restore_shapes=is_traced).eval()
    except Exception as error:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': PyTorch {torch.__version__} cannot open {path}: {said_by(error)}",
        ) from error
    arguments = arguments_of(module)
    inputs = _inputs(module, arguments) if is_traced else None
    if inputs is None:
        return _open_facts(module, arguments, notes)
    dtypes = [value.type().dtype() for value in list(module.graph.inputs())[1:]]
    shapes = [tensor.dims for tensor in inputs]
    try:
        outputs = _outputs(_run(torch, module, dtypes, shapes))
    except Exception as error:
        return ModelFacts(inputs, (), False, notes, remarks=(_NO_RUN.format(said_by(error)),))
    if not _is_batch(torch, module, dtypes, shapes, outputs):
        return ModelFacts(inputs, outputs, False, notes, remarks=(_TRACED_ON,))
    return ModelFacts(_in_rows(inputs), _in_rows(outputs), True, notes, remarks=(_TRACED_ON,))


def _lacking(spec: ModelSpec, names: frozenset[str]) -> tuple[str, ...]:
    """A note where the spec names extra files that are not in the archive."""
    asked = names_of(spec.parameters.get(EXTRA_FILES, ""))
    lacking = [name for name in asked if FOLDER + name not in names]
    there = sorted(name.removeprefix(FOLDER) for name in names if name.startswith(FOLDER))
    if not lacking:
        return ()
    has = f"it has {', '.join(there[:_MOST_NAMES])}" if there else "it has none"
    return (
        f"the archive lacks the extra files {', '.join(lacking)} ({has}): they are empty to a translator",
    )


def _open_facts(module: Any, arguments: tuple[Argument, ...], notes: tuple[str, ...]) -> ModelFacts:
    inputs = open_inputs(arguments)
    if not inputs:
        takes = ", ".join(f"{one.name}: {one.type}" for one in arguments) or "nothing"
        return ModelFacts((), (), False, notes, remarks=(NO_TENSORS.format(takes),))
    outputs = open_outputs(str(module.forward.schema.returns[0].type))
    return ModelFacts(inputs, outputs, False, notes, remarks=(SCRIPTED,))


def _inputs(module: Any, arguments: tuple[Argument, ...]) -> tuple[TensorSpec, ...] | None:
    """None where one of them is no plain tensor."""
    specs: list[TensorSpec] = []
    for argument, value in zip(arguments, list(module.graph.inputs())[1:], strict=True):
        kind = value.type()
        if kind.kind() != "TensorType" or kind.sizes() is None or kind.dtype() is None:
            return None
        datatype = datatype_of(kind.dtype())
        if datatype is None:
            return None
        specs.append(TensorSpec(argument.name, datatype, tuple(kind.sizes())))
    return tuple(specs)


def _run(torch: Any, module: Any, dtypes: list[Any], shapes: _Shapes) -> list[tuple[str, Any]]:
    zeros = [torch.zeros(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    with torch.inference_mode():
        return choose(flatten(module(*zeros), torch.is_tensor), ())


def _outputs(found: list[tuple[str, Any]]) -> tuple[TensorSpec, ...]:
    specs: list[TensorSpec] = []
    for name, tensor in found:
        datatype = datatype_of(tensor.dtype)
        if datatype is None:
            raise ValueError(f"output '{name}' is of {tensor.dtype}, which v2 has no datatype for")
        specs.append(TensorSpec(name, datatype, tuple(tensor.shape)))
    return tuple(specs)


def _is_batch(
    torch: Any, module: Any, dtypes: list[Any], shapes: _Shapes, outputs: tuple[TensorSpec, ...]
) -> bool:
    """Does one row more in every input make one row more in every output?"""
    if not shapes or len({shape[:1] for shape in shapes}) != 1 or shapes[0] == ():
        return False
    rows = shapes[0][0]
    more = [(rows + 1, *shape[1:]) for shape in shapes]
    try:
        grown = _outputs(_run(torch, module, dtypes, more))
    except Exception:  # it takes just what it was traced with
        return False
    return [spec.dims for spec in grown] == [(rows + 1, *spec.dims[1:]) for spec in outputs] and all(
        spec.dims[:1] == (rows,) for spec in outputs
    )


def _in_rows(tensors: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(one.name, one.datatype, (-1, *one.dims[1:])) for one in tensors)
