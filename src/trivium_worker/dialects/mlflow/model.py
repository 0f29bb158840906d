"""Runs a model of MLflow as a Python function: what `mlflow.pyfunc` loads of a folder, signature checks included.

A scoring body is read and answered by MLflow's own scoring code; tensors become the table or the arrays that the
signature asks for. The folder's pickles and modules run as it is loaded: whoever runs the server has trusted them.
"""

from typing import Any

from trivium_worker import pickles
from trivium_worker.dialects.mlflow.answers import tensors_of
from trivium_worker.dialects.mlflow.tables import Columns, as_text
from trivium_worker.runtime.adapter import Adapter, Host, Setup
from trivium_worker.runtime.traces import print_trace
from trivium_worker.wire.values import Failure, Item, Outcome, Part, Raw, frameless

_JSON, _TEXTS = "application/json", ("application/json", "text/csv")
_HINT = (
    "Have the server install what the model's requirements.txt names (--install-packages start), or install that into "
    "the server's own environment."
)


class MlflowAdapter(Adapter):
    """One model, loaded. `settings` has the columns of its signature as [name, type], the names of its parameters, and
    its outputs as [name, datatype, whether it is a column].
    """

    def __init__(self, setup: Setup, host: Host) -> None:
        """Raises Failure ("load failed") with what MLflow, or the model's code, says."""
        settings = setup.settings
        self._model = setup.model
        self._columns = Columns(setup.model, settings["columns"])
        self._params: list[str] = settings["params"]
        self._outputs: list[list[Any]] = settings["outputs"]
        place = setup.root
        try:
            self._function = pickles.opened_function(place)
            from mlflow.pyfunc import scoring_server

            self._score = scoring_server.invocations
            self._schema = self._function.metadata.get_input_schema()
        except ImportError as error:
            raise Failure(f"{self._cannot(place)} {error}. {_HINT}", "load failed") from error
        except Exception as error:
            print_trace(error)
            words = f"{self._cannot(place)} {type(error).__name__}: {error}"
            raise Failure(words[:2000], "load failed") from error

    def run(self, items: list[Item]) -> list[Outcome]:
        """Return an outcome per item; each runs alone."""
        return [self._outcome(item) for item in items]

    def _outcome(self, item: Item) -> Outcome:
        try:
            return self._scored(item.payload) if isinstance(item.payload, Raw) else self._predicted(item)
        except Failure as failure:
            return frameless(failure)
        except Exception as error:
            print_trace(error)
            return frameless(_failure_of(error))

    def _scored(self, raw: Raw) -> Outcome:
        part = next((one for one in raw.parts if one.name in ("", "data", "body")), None)
        if part is None:
            raise _refused("The request has no body. Send JSON, as mlflow models serve takes it.")
        kind = part.content_type or _JSON
        data: Any = bytes(part.data)
        if kind.partition(";")[0].strip().lower() in _TEXTS:
            data = as_text(data, "The body")
        answer = self._score(data, kind, self._function, self._schema)
        body = answer.response if isinstance(answer.response, bytes) else str(answer.response).encode()
        return Raw([Part(body, answer.mimetype)], {"Content-Type": answer.mimetype}, status=answer.status)

    def _predicted(self, item: Item) -> Outcome:
        assert isinstance(item.payload, list), "what is no body is tensors"
        params = {name: item.parameters[name] for name in self._params if name in item.parameters}
        is_table = item.parameters.get("content_type") == "pd"
        data = self._columns.table(item.payload, is_table) if self._columns.are_there or is_table else None
        if data is None:
            arrays = {one.name: one.array() for one in item.payload}
            data = arrays if len(arrays) > 1 or self._is_named() else next(iter(arrays.values()), None)
        found = self._function.predict(data, params=params) if params else self._function.predict(data)
        return tensors_of(found, self._outputs)

    def _is_named(self) -> bool:
        """Does the signature give its tensors names? Then MLflow wants them by those."""
        schema = self._schema
        return schema is not None and schema.is_tensor_spec() and schema.has_input_names()

    def _cannot(self, place: str) -> str:
        return f"Model '{self._model}': MLflow cannot load {place}:"


def _refused(words: str) -> Failure:
    return Failure(words, "invalid", 400, "scoring", {"error_code": "BAD_REQUEST"})


def _failure_of(error: Exception) -> Failure:
    """Return what MLflow or the model raised, with the status and the word that MLflow's own server has for it, and
    what the model's code had raised before.
    """
    word, status = getattr(error, "error_code", None), getattr(error, "get_http_status_code", None)
    if not isinstance(word, str) or not callable(status):
        return Failure(f"{type(error).__name__}: {error}")
    code = int(status())
    before = error.__cause__ or error.__context__
    cause = f" {type(before).__name__}: {before}" if before is not None else ""
    message = f"{getattr(error, 'message', error)}{cause}"[:4000]
    return Failure(
        message, "invalid" if code < 500 else "model failed", code, "scoring", {"error_code": word}
    )
