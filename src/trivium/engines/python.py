"""User code in Python: how a worker process for it is started. One engine per handler dialect.

It opens nothing in this process; what runs the handler is `trivium_worker`, under whichever interpreter the
model asks for. The server's own interpreter and environment come from the composition root.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trivium.environments.preparation import EnvironmentPreparation
from trivium.environments.store import EnvironmentStore
from trivium.environments.worker_programs import CHILD, KEEP_MEMORY, place_variables, worker_setup
from trivium.machine.quiet_libraries import quieted
from trivium.settings.kinds import SWITCH
from trivium.settings.parameters import place_of, read_parameters, unknown_parameters
from trivium.settings.setting import Setting
from trivium.types.errors import Code, ServeError
from trivium.types.findings import Finding, Severity
from trivium.types.interfaces import ProcessGuard
from trivium.types.payload import PayloadKind
from trivium.types.running import CallForm, Placement, ReadMetric, TranslateError, WorkerCommand, unchanged
from trivium.types.spec import Handler, Isolation, ModelFacts, ModelSpec
from trivium.types.spoken import spoken
from trivium.types.trust import FILES

_TRUST = Setting(
    FILES,
    SWITCH,
    "false",
    help="Whether pickles and modules of the folder may run, as their author wrote them.",
)
_PYTHON = Setting(
    "python", help="The interpreter of an environment that has MLflow; empty: the server's own."
)
OPTIONS = (_TRUST, _PYTHON)


class PythonEngine:
    """The handlers of one dialect: a module of `trivium_worker`, named like it. Implements `Engine` and `Launches`.

    `has_facts` is false of them: only a handler that completes its configuration is asked.
    """

    isolation: tuple[Isolation, ...] = (Isolation.PROCESS,)
    has_facts = False

    def __init__(  # noqa: PLR0913 - each dialect sets the last four by name
        self,
        dialect: str,
        takes: frozenset[PayloadKind],
        interpreter: str,
        environment: Mapping[str, str],
        words: TranslateError = unchanged,
        store: EnvironmentStore | None = None,
        read_metric: ReadMetric | None = None,
        open_form: Callable[[], CallForm] | None = None,
    ) -> None:
        """`words` is the form in which the handlers hear what their calls of other models end with; `store` has the
        environments of models that ask for one of their own, which engines may share; `read_metric` reads the lines by
        which they tell of metrics; `open_form` makes the form in which they may call models that generate.
        """
        self.name = f"python-{dialect}"
        self.takes = takes
        self._dialect = dialect
        self._interpreter = interpreter
        self._environment = environment
        self._words = words
        self._read_metric = read_metric
        self._open_form = open_form
        self._store = store or EnvironmentStore()

    def facts(self, spec: ModelSpec) -> ModelFacts:
        """The configuration as the handler completes it, under its own interpreter; what the configuration says where
        it does not. Raises LOAD_FAILED with what its code raised, or how its process ended.
        """
        if spec.handler is None or not spec.handler.completes:
            return ModelFacts(spec.inputs, spec.outputs, batchable=False)
        program = self.program(spec, Placement(spec.name, Isolation.PROCESS))
        done = subprocess.run(
            [*program.command, "--complete"],
            input=json.dumps(program.setup).encode(),
            stdout=subprocess.PIPE,
            cwd=program.directory,
            env=program.environment,
            check=False,
        )
        try:
            answer = json.loads(done.stdout)
            return ModelFacts((), (), batchable=False, document=answer["document"])
        except ValueError as error:
            text = (
                f"Model '{spec.name}' ended its process with status {done.returncode} while it was asked to "
            )
            raise ServeError(Code.LOAD_FAILED, text + "complete its configuration.") from error
        except KeyError as error:
            raise ServeError(Code.LOAD_FAILED, answer["message"]) from error

    def program(self, spec: ModelSpec, placement: Placement) -> WorkerCommand:
        """The worker of one instance. LOAD_FAILED where its interpreter is not there."""
        handler = spec.handler or Handler()
        environment = {**self._variables(handler), **place_variables(placement)}
        return WorkerCommand(
            (self._python(spec, handler, environment), str(CHILD)),
            handler.directory or Path.cwd(),
            environment,
            {
                **worker_setup(self._dialect, spec, placement),
                "function": handler.function,
                "path": [str(path.absolute()) for path in handler.path],
                "settings": dict(handler.settings),
                "python": str(spec.origin.get("handler.python", "as read")),
            },
            self._words,
            self._read_metric,
            self._open_form,
        )

    def preparation(
        self, spec: ModelSpec, scratch: Path | None, guard: ProcessGuard
    ) -> EnvironmentPreparation | None:
        """See `SupportsPreparation`: it makes the environment that a handler asks for. LOAD_FAILED as `program`."""
        handler = spec.handler
        if handler is None or handler.own is None:
            return None
        environment = self._variables(handler)
        python = self._python(spec, handler, environment)
        return EnvironmentPreparation(
            spec, handler, handler.own, python, environment, self._store, scratch, guard
        )

    def _variables(self, handler: Handler) -> Mapping[str, str]:
        return {**KEEP_MEMORY, **quieted(self._environment), "PYTHONUNBUFFERED": "1", **handler.environment}

    def _python(self, spec: ModelSpec, handler: Handler, environment: Mapping[str, str]) -> str:
        if not handler.python:
            return self._interpreter
        found = shutil.which(handler.python, path=environment.get("PATH"))
        if found is None:
            raise ServeError(
                Code.LOAD_FAILED,
                f"Model '{spec.name}' asks for the interpreter {handler.python} "
                f"({spec.origin.get('handler.python', 'as read')}), which is not there or may not be run. Give the "
                "path of a Python 3.10 or newer, or leave it out for the server's own.",
            )
        return found


class FunctionEngine(PythonEngine):
    """Folders whose pickles and modules run as they are loaded, once the operator trusts them: that is asked before a
    worker starts, and before anything is installed for one. Implements `SupportsCheck`, too.
    """

    def check(self, spec: ModelSpec) -> Sequence[Finding]:
        """See `SupportsCheck`: whether the folder is trusted. Nothing of it is opened."""
        file = str(spec.root / spec.entry)
        notes = unknown_parameters(spec.parameters, self.name, [row.name for row in OPTIONS])
        notices = [Finding(Severity.NOTICE, file, None, "", note) for note in notes]
        if _is_trusted(spec):
            return notices
        found = f"a model whose code runs as it is loaded, and {FILES} is not true{place_of(spec, FILES)}"
        hint = spoken(f"If you trust the folder, give --engine-parameters {self.name}.{FILES}=true.")
        return [*notices, Finding(Severity.ERROR, file, None, "", found, "a folder that is trusted", hint)]

    def program(self, spec: ModelSpec, placement: Placement) -> WorkerCommand:
        """See `PythonEngine`; LOAD_FAILED where the folder is not trusted."""
        self._check_trust(spec)
        return super().program(spec, placement)

    def preparation(
        self, spec: ModelSpec, scratch: Path | None, guard: ProcessGuard
    ) -> EnvironmentPreparation | None:
        """See `SupportsPreparation`; LOAD_FAILED as `program`."""
        self._check_trust(spec)
        return super().preparation(spec, scratch, guard)

    def _check_trust(self, spec: ModelSpec) -> None:
        if not _is_trusted(spec):
            (fault,) = (one for one in self.check(spec) if one.severity is Severity.ERROR)
            raise ServeError(Code.LOAD_FAILED, f"Model '{spec.name}': {fault}")


def _is_trusted(spec: ModelSpec) -> bool:
    return bool(read_parameters(spec, OPTIONS).get(FILES, False))
