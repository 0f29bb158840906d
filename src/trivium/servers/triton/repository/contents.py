"""Does the folder hold what its configuration speaks of: versions, model files, labels, warm-up data?

Judges the picture of `folder` against a configuration that could be read. Must not fill anything in.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import assert_never

from trivium.servers.triton.repository.folder import TritonModelFolder
from trivium.servers.triton.words.backends import Backend
from trivium.servers.triton.words.config_text import ConfigText
from trivium.types.findings import Change, Finding
from trivium.types.spec import All, Latest, Specific, VersionPolicy
from trivium.types.spoken import spoken


def version_policy(text: ConfigText) -> VersionPolicy:
    """The policy that the configuration names; without one the latest version."""
    policy = text.config.version_policy
    match policy.WhichOneof("policy_choice"):
        case "all":
            return All()
        case "specific":
            return Specific(frozenset(str(version) for version in policy.specific.versions))
        case "latest":
            return Latest(policy.latest.num_versions)
        case _:
            return Latest(1)


def wanted_versions(policy: VersionPolicy, folder: TritonModelFolder) -> list[str]:
    """The versions that the policy serves now, of those there are, by rising number."""
    there = list(folder.versions)
    match policy:
        case All():
            return there
        case Latest(count):
            return there[-count:] if count else []
        case Specific(versions):
            return [version for version in there if version in versions]
        case _:
            assert_never(policy)


def check_name(text: ConfigText, folder: TritonModelFolder) -> Iterator[Finding]:
    """A name in the file must be the folder's."""
    name = text.config.name
    if name and name != folder.name:
        hint = f'Write name: "{folder.name}", or rename the folder.'
        found, change = f"the name {name} in the folder {folder.name}", Change(value=f'"{folder.name}"')
        yield text.fault("name", found, f"{folder.name}", hint, change)


def check_choice(text: ConfigText, folder: TritonModelFolder) -> Iterator[Finding]:
    """There are configurations to choose from, and none of them was."""
    if not folder.configs or folder.preferred in folder.configs:
        return
    there = ", ".join(f"configs/{name}.pbtxt" for name in folder.configs)
    if folder.preferred:
        yield text.notice("", f"no configs/{folder.preferred}.pbtxt; there is {there}")
    elif not folder.has_config:
        yield text.notice("", spoken(f"no config.pbtxt; --model-config-name can choose one of {there}"))


def check_versions(text: ConfigText, folder: TritonModelFolder) -> Iterator[Finding]:
    """Is there a version, and each that is named?"""
    there = ", ".join(folder.names) or "nothing"
    if not folder.versions:
        hint = f"Put the model file into {folder.path / '1'}."
        if text.config.HasField("ensemble_scheduling"):
            hint = f"Make the folder {folder.path / '1'}; that of an ensemble stays empty."
        yield text.fault("", f"no version folder; the folder has {there}", "a folder named 1, 2, ...", hint)
        return
    for i, version in enumerate(text.config.version_policy.specific.versions):
        if str(version) not in folder.versions:
            found = f"the version {version}, which is not there"
            key = f"version_policy.specific.versions[{i}]"
            expected = f"one of {', '.join(folder.versions)}"
            yield text.fault(key, found, expected, "Add the folder, or remove the number.")
    for name in folder.misnamed:
        yield text.notice("", f"the folder {name} is no version: a version's number has no leading zero")


def check_files(text: ConfigText, folder: TritonModelFolder, backend: Backend) -> Iterator[Finding]:
    """Is the model file in each version, and the labels and warm-up data where they are spoken of?"""
    entry = text.config.default_model_filename or backend.filename
    wanted = wanted_versions(version_policy(text), folder)
    for version, names in folder.versions.items():
        if entry and not (folder.path / version / entry).exists():
            there = ", ".join(sorted(names)) or "nothing"
            found = f"no {entry} in {folder.path / version}; it has {there}"
            if version in wanted:
                hint = "Add the file, or name the one that is there in default_model_filename."
                yield text.fault("default_model_filename", found, f"the model file {entry}", hint)
            else:
                yield text.notice("default_model_filename", f"{found}. The version is not served anyway")
    for i, output in enumerate(text.config.output):
        if output.label_filename and not (folder.path / output.label_filename).is_file():
            yield _no_file(text, f"output[{i}].label_filename", folder, output.label_filename)
    for block in text.blocks("ModelWarmup.Input"):
        key = f"{block}.input_data_file"
        if key in text.entries:
            name = f"warmup/{text.entries[key].value}"
            if not (folder.path / name).is_file():
                yield _no_file(text, key, folder, name)


_PATH_KEYS = ("default_model_filename", "label_filename", "input_data_file")


def check_paths(text: ConfigText) -> Iterator[Finding]:
    """A model folder speaks of its own files only: nobody else's are opened on its word."""
    for key, entry in text.entries.items():
        if key.rpartition(".")[2] not in _PATH_KEYS or not isinstance(entry.value, str):
            continue
        path = PurePosixPath(entry.value)
        if path.is_absolute() or ".." in path.parts:
            hint = "Put the file into the model's folder and give its path from there."
            yield text.fault(
                key, f"{entry.value}, which leads out of the model's folder", "a path inside", hint
            )


def check_completeness(text: ConfigText, backend: Backend, completes: bool) -> Iterator[Finding]:
    """Only some backends find out inputs and outputs from the model file, and only on a server that completes."""
    if not backend.needs_tensors or (backend.completes and completes):
        return
    why = f"the backend {backend.name or backend.platform} cannot find it out"
    if not completes:
        why = "nothing is completed on this server"
    for section, count in (("input", len(text.config.input)), ("output", len(text.config.output))):
        if not count:
            found = f"no {section}, and {why}"
            hint = f'Add {section} {{ name: "..." data_type: TYPE_FP32 dims: [ ... ] }}.'
            yield text.fault(section, found, f"a block for every {section}", hint)


def check_unaided(text: ConfigText, folder: TritonModelFolder) -> Iterator[Finding]:
    """Where nothing is completed: is everything said that otherwise the folder or the model file says?"""
    config = text.config
    if not folder.has_config:
        yield text.fault("", "no config.pbtxt", "one: nothing is completed on this server", "Write it.")
        return
    if not config.name:
        yield text.fault("name", "no name", folder.name, f'Add name: "{folder.name}".')
    if not (config.backend or config.platform):
        hint = 'Add backend: "onnxruntime" or whichever serves the file.'
        yield text.fault("backend", "neither backend nor platform", "one of them", hint)


def _no_file(text: ConfigText, key: str, folder: TritonModelFolder, name: str) -> Finding:
    return text.fault(
        key, f"{folder.path / name}, which is no file", "a file", "Add it, or correct the name."
    )
