"""The environment of its own that a Python model gets: for its requirements.txt, or because it asks for one.

Source: spec sheet `djl`, sections 3.2 and 8.6. Whether packages may be installed at all is the server's to say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trivium.servers.djl.folder.folder import DjlModelFolder
from trivium.servers.djl.words.layers import threads_of
from trivium.servers.djl.words.settings import DjlSettings
from trivium.types.spec import OwnEnvironment

REQUIREMENTS, BUNDLED = "requirements.txt", "requirements"
_KEY = "option.enable_venv"
_TRUE = "true"


@dataclass(frozen=True, slots=True)
class EnvironmentRules:
    """Holds what the variables of the server say: where environments are made (None: in its scratch folder), and
    whether the network is left alone. `threads` is the OMP_NUM_THREADS of workers, 0 where it is not set; `task` what
    models are for that do not say so.
    """

    folder: Path | None = None
    is_offline: bool = False
    threads: int = 1
    task: str = ""


def environment_rules(variables: Mapping[str, str]) -> EnvironmentRules:
    """Return the rules of a server with these variables."""
    folder = variables.get("DJL_VENV_DIR", "")
    is_offline = variables.get("DJL_OFFLINE", "").strip().lower() == _TRUE
    parent = Path(folder).absolute() if folder else None
    return EnvironmentRules(parent, is_offline, threads_of(variables), variables.get("HF_TASK", ""))


def own_environment(
    settings: DjlSettings, folder: DjlModelFolder, rules: EnvironmentRules, installs: bool
) -> OwnEnvironment | None:
    """Return what environment the model gets; None for that of its interpreter. What is not done is a notice."""
    wish = settings.text([_KEY]).value.lower()
    is_private, has_requirements = wish == _TRUE, REQUIREMENTS in folder.files
    if has_requirements and not installs:
        settings.notice(
            "",
            "the packages of requirements.txt are not installed",
            "Start the server with --install-packages start, or all for models that clients register, too; or install "
            "them for the interpreter that option.pythonExecutable names.",
        )
    if not is_private and not (has_requirements and installs):
        return None
    return OwnEnvironment(
        requirements=REQUIREMENTS if has_requirements and installs else "",
        wheels=BUNDLED if has_requirements and installs and BUNDLED in folder.folders else "",
        is_offline=rules.is_offline,
        is_private=is_private,
        parent=rules.folder,
    )
