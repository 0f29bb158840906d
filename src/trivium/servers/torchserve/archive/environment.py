"""The environment of its own that a handler gets: for what its manifest requires, or because it asks for one.

Source: spec sheet `torchserve`, section 3.5. Whether packages may be installed at all is the server's to say; where
they may, a model is not served without those that it names, as in the original.
"""

from pathlib import Path

from trivium.servers.torchserve.words.manifest import Manifest
from trivium.servers.torchserve.words.model_config import ModelConfig
from trivium.types.findings import Finding, Severity
from trivium.types.spec import OwnEnvironment

KEY, OWN = "model.requirementsFile", "useVenv"


def own_environment(manifest: Manifest, config: ModelConfig, installs: bool) -> OwnEnvironment | None:
    """Return what environment the model gets; None for that of its interpreter."""
    is_private = config.values.get(OWN) is True
    requirements = manifest.requirements_file if installs else ""
    if not is_private and not requirements:
        return None
    return OwnEnvironment(requirements, is_private=is_private, needs_packages=bool(requirements))


def check_requirements(manifest: Manifest, folder: Path, installs: bool) -> list[Finding]:
    """Say of requirements that they are not installed, or that they cannot be, since their file is not there."""
    name = manifest.requirements_file
    if not name:
        return []
    if not installs:
        found = f"the packages of {name} are not installed (as in the original, unless it is told to)"
        hint = (
            "Write install_py_dep_per_model=true into config.properties, or start with --install-packages start; or "
            "have them in the server's interpreter."
        )
        return [Finding(Severity.NOTICE, manifest.file, manifest.lines.get(KEY), KEY, found, "", hint)]
    if (folder / name).is_file():
        return []
    names = sorted(entry.name for entry in folder.iterdir())[:20]
    return [
        manifest.fault(
            KEY,
            f"{name}, which is not there",
            f"a file of the archive, which holds {', '.join(names)}",
            "Pack it, too.",
        )
    ]
