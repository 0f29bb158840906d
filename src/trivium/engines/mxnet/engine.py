"""MXNet: models of a symbol and its parameters, run by a worker in the named environment `mxnet`.

The last MXNet needs a numpy that no other library here can use, so it is never imported in the server's environment:
facts come from readers of our own, and `trivium_worker.dialects.mxnet` runs the model (ADR 57).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from trivium.engines.mxnet.files import SYMBOL, epochs, params_file
from trivium.engines.mxnet.params_file import ParamsFault, read_params, total_bytes
from trivium.engines.mxnet.symbol_file import MOST_BYTES, SymbolFault, SymbolFile, read_symbol
from trivium.environments.named import NamedEnvironments, environments_of
from trivium.environments.recipe import inside
from trivium.environments.worker_programs import CHILD, KEEP_MEMORY, place_variables, worker_setup
from trivium.files import mapped_file, open_file
from trivium.machine.quiet_libraries import quieted
from trivium.settings.kinds import SWITCH, Whole
from trivium.settings.parameters import read_parameters, unknown_parameters
from trivium.settings.setting import Setting
from trivium.types.datatype import DataType
from trivium.types.errors import Code, ServeError, said_by
from trivium.types.findings import Finding, Severity
from trivium.types.hazards import Hazard, isolation_by, placed_by
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement, WorkerCommand
from trivium.types.spec import Join, ModelFacts, ModelSpec, TensorSpec

THREADS = Setting("threads", Whole(1, 9999), "1", help="Threads of one instance.")
EPOCH = Setting("epoch", Whole(0, 9999), help="The epoch whose parameters count; without it the last one.")
HAS_PARAMETERS = Setting(
    "has_parameters", SWITCH, "true", help="Whether the symbol has parameters: false for one without any."
)
OPTIONS = (THREADS, EPOCH, HAS_PARAMETERS)
ENVIRONMENT = "mxnet"
_HAZARDS = (Hazard.FOREIGN,)
_SAVE = "Save both anew with MXNet: block.export(name), or module.save_checkpoint(name, epoch)."


class MxnetEngine:
    """The descriptor. Implements `Engine` and `WorkerEngine`; `environment` holds the server's variables."""

    name = "mxnet"
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.TENSORS})
    has_facts = True
    isolation = isolation_by(_HAZARDS)

    def __init__(self, environment: Mapping[str, str], named: NamedEnvironments | None = None) -> None:
        self._environment = environment
        self._named = named or environments_of(environment)

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Inputs are the variables without a parameter, outputs the heads. MXNet is not needed. Raises LOAD_FAILED."""
        symbol = _symbol(spec)
        file = _params(spec)
        details = dict(placed_by(_HAZARDS))
        parameters: frozenset[str] = frozenset()
        if file:
            try:
                arrays = read_params(mapped_file(spec.root / file))
            except (ParamsFault, OSError) as error:
                raise _unreadable(spec, file, error) from error
            parameters = frozenset(arrays)
            size = f"{total_bytes(list(arrays.values()))} bytes in {len(arrays)} arrays"
            details["parameters"] = (size, f"the file {file}")
        try:
            inputs = symbol.inputs(parameters)
        except SymbolFault as error:
            raise _unreadable(spec, spec.entry, error) from error
        outputs = tuple(TensorSpec(one, DataType.FP32, (-1,), open=True) for one in symbol.outputs)
        notes = (
            *unknown_parameters(spec.parameters, self.name, [row.name for row in OPTIONS]),
            *(_for_training(node) for node in symbol.training[:1]),
        )
        batchable = all(one.open or one.dims[:1] == (-1,) for one in inputs)
        return ModelFacts(inputs, outputs, batchable, notes, details=details)

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """See `SupportsCheck`: whether the environment is there."""
        if self._named.find(ENVIRONMENT) is not None:
            return ()
        return (_absent(spec),)

    def program(self, spec: ModelSpec, placement: Placement) -> WorkerCommand:
        """The worker of one instance. LOAD_FAILED, with the command that makes it, where its environment is not there,
        and where parameters are missing.
        """
        made = self._named.find(ENVIRONMENT)
        if made is None:
            raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': {_absent(spec)}")
        file = _params(spec)
        threads = str(read_parameters(spec, [THREADS]).get("threads", 1))
        setup = worker_setup("mxnet", spec, placement)
        setup["settings"] = {
            "parameters": file,
            "inputs": [[one.name, one.datatype.wire] for one in spec.inputs],
            "outputs": [one.name for one in spec.outputs],
            "batch": spec.batching.join.value if _splits(spec) else "",
        }
        variables = {
            **KEEP_MEMORY,
            **quieted(self._environment),
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": threads,
            **place_variables(placement),
            **inside(made.place, self._environment.get("PATH", "")),
        }
        for name in ("PYTHONPATH", "PYTHONHOME"):  # the packages of another interpreter
            variables.pop(name, None)
        return WorkerCommand((str(made.python), str(CHILD)), Path.cwd(), variables, setup)


def _for_training(node: str) -> str:
    return (
        f"its symbol is one for training: the operation {node} compares with labels, which each request would have to "
        "send. Save the one for inference: deploy.py of MXNet's SSD example makes it of this one."
    )


def _absent(spec: ModelSpec) -> Finding:
    return Finding(
        Severity.ERROR,
        str((spec.shown_root or spec.root) / spec.entry),
        None,
        "",
        "a model of MXNet, whose environment is not there",
        f"the environment '{ENVIRONMENT}'",
        f"Make it with: trivium env build {ENVIRONMENT}",
    )


def _splits(spec: ModelSpec) -> bool:
    return spec.batching.batch_axis or spec.batching.join is not Join.ROWS


def _symbol(spec: ModelSpec) -> SymbolFile:
    path = spec.root / spec.entry
    try:
        with open_file(path) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unreadable(spec, spec.entry, error) from error
    try:
        if len(data) > MOST_BYTES:
            raise SymbolFault(f"it has more than {MOST_BYTES} bytes")
        return read_symbol(data)
    except SymbolFault as error:
        raise _unreadable(spec, spec.entry, error) from error


def _params(spec: ModelSpec) -> str:
    """Return the name of the parameter file that counts; empty for a symbol without parameters. LOAD_FAILED where it is
    not there.
    """
    told = read_parameters(spec, OPTIONS)
    if not told.get("has_parameters", True):
        return ""
    epoch = told.get("epoch")
    try:
        there = epochs(spec.root, spec.entry)
        found = params_file(spec.root, spec.entry, epoch)
    except OSError as error:
        raise _unreadable(spec, spec.entry, error) from error
    if found:
        return found
    prefix = spec.entry.removesuffix(SYMBOL)
    wanted = f"{prefix}-{epoch or 0:04d}.params"
    plain = f"{prefix}.params"
    if (spec.root / plain).is_file() and epoch is None:
        raise ServeError(
            Code.LOAD_FAILED,
            f"Model '{spec.name}': there is no file {spec.root / wanted} for MXNet, but {plain}, as a block's "
            f"save_parameters writes it. Rename it to {wanted}.",
        )
    has = (
        f"there are the epochs {', '.join(map(str, sorted(there)[:20]))}"
        if there
        else "there are no parameters"
    )
    raise ServeError(
        Code.LOAD_FAILED,
        f"Model '{spec.name}': there is no file {spec.root / wanted} for MXNet; {has} of {spec.entry}. Add the file, "
        f"{'or correct epoch' if there else 'or set has_parameters=false for a symbol without any'}.",
    )


def _unreadable(spec: ModelSpec, file: str, error: Exception) -> ServeError:
    return ServeError(
        Code.LOAD_FAILED,
        f"Model '{spec.name}': the engine mxnet cannot read {spec.root / file}: {said_by(error)[:400]}. {_SAVE}",
    )
