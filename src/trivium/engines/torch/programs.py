"""A model file once it is opened: what to call, with which arguments, and whose memory it answers with.

Of the three kinds that are served: TorchScript, programs of torch.export, and packages that AOTInductor has compiled.
Knows no files.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trivium.engines.torch.call import Argument, arguments_of

DICTIONARY, LIST, TENSOR = "Dict[str, Tensor]", "List[Tensor]", "Tensor"


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class ExportedProgram:
    """Something to call. `writes`: into its inputs; `own`: the addresses of the memory that is its own, and may come
    out of it.
    """

    call: Callable[..., Any]
    arguments: tuple[Argument, ...]
    writes: bool
    own: frozenset[int]


def of_script(module: Any) -> ExportedProgram:
    """A TorchScript module."""
    graph = module.inlined_graph
    aliases = graph.alias_db()
    writes = any(aliases.has_writers(value) for value in list(graph.inputs())[1:])
    return ExportedProgram(module, arguments_of(module), writes, _own(module))


def of_exported(program: Any, module: Any) -> ExportedProgram:
    """A program of torch.export, and the module made of it."""
    signature = program.graph_signature
    names = [str(name) for name in signature.user_inputs]
    arguments, call = _arranged(module, program.call_spec.in_spec, names)
    return ExportedProgram(call, arguments, bool(signature.user_inputs_to_mutate), _own(module))


def of_compiled(torch: Any, package: Any) -> ExportedProgram:
    """A package of AOTInductor, whose arguments have no names. It may write into its inputs, for all that is known."""
    spec = torch.utils._pytree.treespec_loads(package.loader.get_call_spec()[0])
    names = [f"ARGUMENT__{at}" for at in range(spec.num_leaves)]
    arguments, call = _arranged(package, spec, names)
    return ExportedProgram(call, arguments, True, frozenset())


def _own(module: Any) -> frozenset[int]:
    kept = (*module.parameters(), *module.buffers())
    return frozenset(tensor.untyped_storage().data_ptr() for tensor in kept)


def _arranged(
    call: Callable[..., Any], spec: Any, names: Sequence[str]
) -> tuple[tuple[Argument, ...], Callable[..., Any]]:
    """The arguments that a tree of inputs stands for, and a call that takes them by position or by name."""
    positional, by_name = _children(spec)
    trees = [*_children(positional), *_children(by_name)]
    keys = [str(key) for key in by_name.context or ()]
    if len(trees) == 1 and not keys and not trees[0].is_leaf():
        return _of_one(call, trees[0])
    if any(not tree.is_leaf() for tree in trees):
        shape = "a tree of several arguments" if len(trees) > 1 else "a tree by name"
        return (Argument("inputs", shape, False),), call
    count = len(trees) - len(keys)
    order = [*names[:count], *keys]

    def ordered(*given: Any, **named: Any) -> Any:
        found = dict(zip(order, given, strict=False)) | named
        return call(*(found[name] for name in order[:count]), **{key: found[key] for key in keys})

    return tuple(Argument(name, TENSOR, False) for name in order), ordered


def _of_one(call: Callable[..., Any], tree: Any) -> tuple[tuple[Argument, ...], Callable[..., Any]]:
    """A single argument that is a dictionary, or a sequence, of tensors."""
    is_flat = all(child.is_leaf() for child in _children(tree))
    if tree.type is dict and is_flat:
        keys = list(tree.context)
        return (Argument("inputs", DICTIONARY, False),), lambda given: call({key: given[key] for key in keys})
    if tree.type in (list, tuple) and is_flat:
        return (Argument("inputs", LIST, False),), lambda given: call(tree.type(given))
    return (Argument("inputs", f"a {tree.type.__name__} of other things than tensors", False),), call


def _children(tree: Any) -> list[Any]:
    """Older releases have an attribute, newer ones a method."""
    return list(tree.children() if hasattr(tree, "children") else tree.children_specs)
