"""Prepares a load of a model that asks for an environment of its own: makes it, and has the handler run in it.

Implements `Preparation`. Packages that cannot be installed fail the load of a handler that says so; that of any other
goes on, and fails where the handler does.
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trivium.environments.recipe import EnvironmentRecipe, inside
from trivium.environments.store import (
    BuildServices,
    EnvironmentFailed,
    EnvironmentLease,
    EnvironmentStore,
    scratch_folder,
)
from trivium.types import reasons
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.interfaces import ProcessGuard
from trivium.types.running import Prepared
from trivium.types.spec import Handler, ModelSpec, OwnEnvironment


class EnvironmentPreparation:
    """Gives one load the environment that its handler asks for. `environment` holds the variables of its workers."""

    def __init__(  # noqa: PLR0913 - the load, and what the server lends for it
        self,
        spec: ModelSpec,
        handler: Handler,
        own: OwnEnvironment,
        python: str,
        environment: Mapping[str, str],
        store: EnvironmentStore,
        scratch: Path | None,
        guard: ProcessGuard,
    ) -> None:
        self._spec = spec
        self._handler = handler
        self._environment = environment
        self._store = store
        self._stop = threading.Event()
        self._recipe = EnvironmentRecipe(python, handler.directory or spec.root, own, handler.environment)
        log = logging.getLogger(f"trivium.worker.{spec.name}")
        self._services = BuildServices(
            scratch_folder(scratch),
            environment,
            self._stop,
            guard,
            lambda line: log.info("packages: %s", line),
        )
        self._running = threading.Lock()
        self._lease: EnvironmentLease | None = None

    def run(self) -> Prepared:
        """See `Preparation`."""
        with self._running:
            try:
                if self._stop.is_set():
                    raise EnvironmentFailed("The load was given up before it began.")
                self._lease = self._store.acquire(self._recipe, self._services)
            except EnvironmentFailed as error:
                text = f"No environment of its own could be made for model '{self._spec.name}'. {error}"
                if self._recipe.wish.is_private:
                    raise ServeError(Code.LOAD_FAILED, text) from error
                return Prepared(self._spec, f"{text} It runs in that of {self._recipe.python}.")
            made = self._lease.made
            if made.warning and self._recipe.wish.needs_packages:
                facts = {"model": self._spec.name, "version": self._spec.version}
                raise ServeError(
                    Code.LOAD_FAILED,
                    f"Model '{self._spec.name}' is not loaded. {made.warning}",
                    info=ErrorInfo.of(reasons.NO_PACKAGES, **facts),
                )
            own = inside(made.place, self._environment.get("PATH", ""))
            handler = replace(
                self._handler, python=str(made.python), environment={**self._handler.environment, **own}
            )
            return Prepared(replace(self._spec, handler=handler), made.warning)

    def stop(self) -> None:
        """See `Preparation`."""
        self._stop.set()

    def undo(self) -> None:
        """See `Preparation`."""
        self._stop.set()
        with self._running:
            lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()
