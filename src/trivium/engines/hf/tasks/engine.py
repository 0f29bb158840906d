"""Models of texts on transformers' Auto classes: what a class of config.json, or its operator, says they are for.

Always in a process of its own: a call holds the interpreter. Which requests share a call is the runner's to say.
"""

from collections.abc import Mapping

from trivium.engines.hf.facts import origin_of
from trivium.engines.hf.folder import Checkpoint, architecture, checkpoint, unfit
from trivium.engines.hf.folder_code import FolderCode
from trivium.engines.hf.library import libraries, require_libraries
from trivium.engines.hf.tasks.task_options import TaskOptions, task_options, unknown
from trivium.engines.hf.tasks.task_tensors import inputs_of, outputs_of
from trivium.types.errors import Code
from trivium.types.interfaces import Runner
from trivium.types.model_tasks import NAMES, ModelTask, classes_of, does, task_of
from trivium.types.payload import PayloadKind
from trivium.types.running import Placement
from trivium.types.spec import Device, Isolation, ModelFacts, ModelSpec

_WIDTHS = ("hidden_size", "d_model", "dim", "n_embd")


class HfTasksEngine:
    """The descriptor."""

    name = "hf-tasks"
    takes: frozenset[PayloadKind] = frozenset({PayloadKind.RAW, PayloadKind.TENSORS})
    isolation: tuple[Isolation, ...] = (Isolation.PROCESS,)
    has_facts = True

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """Return what the files say, without a heavy library. Raises as `Engine.facts` says."""
        require_libraries()
        options = task_options(spec)
        files = _files(spec, options)
        task = _task(spec, options, files)
        widths = (files.config.get(name) for name in _WIDTHS)
        width = next((one for one in widths if isinstance(one, int)), 0)
        details = _details(spec, options, files, task)
        warnings = unknown(spec.parameters)
        return ModelFacts(inputs_of(task), outputs_of(task, width), False, warnings, details=details)

    def runs_folder_code(self, spec: ModelSpec) -> bool:
        """See `RunsFolderCode`: the facts are read of files alone."""
        return False

    def open(self, spec: ModelSpec, placement: Placement) -> Runner:
        """See `OpensRunner`."""
        torch, _ = libraries()
        options = task_options(spec)
        task = _task(spec, options, _files(spec, options))

        from trivium.engines.hf.tasks.task_model import load
        from trivium.engines.hf.tasks.task_runner import TaskRunner

        is_gpu = placement.device is Device.GPU
        if is_gpu and placement.device_id >= (torch.cuda.device_count() if torch.cuda.is_available() else 0):
            words = f"instance {placement.name} is to run on GPU {placement.device_id}, which PyTorch does not see."
            raise unfit(spec, f"{words} Install a PyTorch for CUDA, name another GPU, or use the CPU.")
        device = torch.device("cuda", placement.device_id) if is_gpu else torch.device("cpu")
        return TaskRunner(spec.name, load(spec, options, task, device), options.streams)


def _files(spec: ModelSpec, options: TaskOptions) -> Checkpoint:
    return checkpoint(spec, FolderCode(spec.name, options.trust_remote_code), is_causal=False)


def _task(spec: ModelSpec, options: TaskOptions, files: Checkpoint) -> ModelTask:
    """Return what the model is for. UNSUPPORTED where its class does not do that, or nothing says it."""
    name = architecture(files.config)
    task = options.task or task_of(name)
    if task is None:
        words = f"config.json names the architecture '{name or 'none'}', which tells no task"
        raise unfit(spec, f"{words}. Set the task: {', '.join(NAMES)}.", Code.UNSUPPORTED)
    if not does(name, task):
        ends = " or ".join(classes_of(task))
        words = (
            f"the task {task.value} is for classes that end in {ends}, and config.json names {name or 'none'}"
        )
        raise unfit(
            spec, f"{words}. Set another task, or serve a model that was trained for it.", Code.UNSUPPORTED
        )
    return task


def _details(
    spec: ModelSpec, options: TaskOptions, files: Checkpoint, task: ModelTask
) -> Mapping[str, tuple[str, str]]:
    """Return what people want to know of a model, each with where it comes from."""
    size = 4 if options.dtype in ("auto", "fp32") else 2
    memory = f"{files.numbers * size / 1e9:.2f} GB of weights, and what a call of up to 32 texts computes"
    shown = "fp32" if options.dtype == "auto" else options.dtype
    return {
        "task": (task.value, origin_of(spec, "task", "config.json (architectures)")),
        "architecture": (architecture(files.config), "config.json (architectures)"),
        "dtype": (shown, origin_of(spec, "dtype", "default; that of the file on a GPU")),
        "memory": (memory, "an estimate: the weights, as they are computed"),
    }


ENGINE = HfTasksEngine()
