"""Makes the handler of a model that MLflow itself loads: its part of the signature, and its environment.

Packages that `requirements.txt` names are installed only where the server says that packages may be.
"""

from collections.abc import Mapping

from trivium.formats.mlflow.document import ModelDocument
from trivium.formats.mlflow.flavors import FUNCTION
from trivium.formats.mlflow.signature import Signature
from trivium.formats.mlflow.tensors import OUTPUT, tensors_of
from trivium.types.findings import Finding, Severity
from trivium.types.spec import Defaults, Handler, OwnEnvironment
from trivium.types.spoken import spoken

REQUIREMENTS = "requirements.txt"
_OLDER = ("conda.yaml", "python_env.yaml")
_VARIABLES: Mapping[str, str] = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_CONFIGURE_LOGGING": "false"}
"""What a worker's MLflow is told: to report nothing to anybody, and to leave the log to the server."""


def handler_of(document: ModelDocument, signature: Signature, defaults: Defaults) -> Handler:
    """Return the handler. It has an environment of its own where packages may be installed and the folder names some.
    Its interpreter is the operator's to name, by a parameter of the engine.
    """
    folder = document.path.parent
    installs = defaults.installs and (folder / REQUIREMENTS).is_file()
    return Handler(
        python=defaults.parameters_of(FUNCTION).get("python", ""),
        directory=folder,
        environment=_VARIABLES,
        settings={
            "columns": [[one.name, one.type] for one in signature.inputs.columns],
            "params": list(signature.params),
            "outputs": [
                [one.name, one.datatype.wire, one.column] for one in tensors_of(signature.outputs, OUTPUT)
            ],
        },
        own=OwnEnvironment(REQUIREMENTS, needs_packages=True) if installs else None,
    )


def packages_left(document: ModelDocument, defaults: Defaults) -> list[Finding]:
    """Say of packages that the folder names that they are not installed, and what to do."""
    folder = document.path.parent
    has = (folder / REQUIREMENTS).is_file()
    if (has and defaults.installs) or defaults.parameters_of(FUNCTION).get("python"):
        return []
    older = next((name for name in _OLDER if (folder / name).is_file()), "")
    if not has and not older:
        return []
    file = str(folder / (REQUIREMENTS if has else older))
    found = "its packages are not installed: MLflow and all that the model needs are those of the server's environment"
    hint = spoken("Start with --install-packages start, or install them where the server runs.")
    if not has and defaults.installs:
        hint = f"Write them into a file {REQUIREMENTS} beside it, which is what is installed."
    return [Finding(Severity.NOTICE, file, None, "", found, "", hint)]
