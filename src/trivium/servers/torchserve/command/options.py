"""The command line of `torchserve`: its options, and the folders and files that they must name.

Source: spec sheet `torchserve`, section 1: who starts wrongly reads the original's first line, and gets its exit
status.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from trivium.types.sources import SourceSetting
from trivium.types.spec import Origin

FAILED = 1
READY_DESCRIPTOR = "--ready-descriptor"


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line; it refuses as the original does, with exit status 2."""
    made = argparse.ArgumentParser("torchserve", description="Torchserve")
    what = made.add_mutually_exclusive_group()
    what.add_argument("-v", "--version", action="store_true", help="Return TorchServe Version")
    what.add_argument("--start", action="store_true", help="Start the model-server")
    what.add_argument("--stop", action="store_true", help="Stop the model-server")
    made.add_argument(
        "--ts-config", metavar="FILE", default="", help="Configuration file (config.properties)"
    )
    made.add_argument("--model-store", metavar="DIR", default="", help="Folder that models are loaded from")
    made.add_argument("--workflow-store", metavar="DIR", default="", help="Folder of workflows")
    made.add_argument(
        "--models",
        metavar="MODEL",
        nargs="+",
        default=[],
        help="Models to start with: archive.mar, name=archive.mar, a folder, a URL, or all",
    )
    made.add_argument("--log-config", metavar="FILE", default="", help="Log4j configuration file")
    made.add_argument(
        "--cpp-log-config", metavar="FILE", default="", help="Log configuration of the C++ backend"
    )
    made.add_argument("--foreground", action="store_true", help="Wait until the server ends")
    made.add_argument(
        "--no-config-snapshots", "--ncs", action="store_true", help="Write and read no snapshots"
    )
    made.add_argument("--plugins-path", "--ppath", metavar="DIR", default="", help="Folder of plug-ins")
    made.add_argument("--disable-token-auth", "--dt", action="store_true", help="Let in who shows no key")
    made.add_argument(
        "--enable-model-api", action="store_true", help="Let clients register and unregister models"
    )
    made.add_argument(READY_DESCRIPTOR, type=int, default=-1, help=argparse.SUPPRESS)
    return made


def check_log_config(options: argparse.Namespace) -> None:
    """Raise Refused for a log configuration that is not there; of all that is not, the original names it first."""
    _check_file("log_config", options)


def check_model_store(options: argparse.Namespace) -> None:
    """Raise Refused for a model store that is not there."""
    _check_folder("model_store", options)


def check_other_places(options: argparse.Namespace) -> None:
    """Raise Refused for what the original looks for once it has a model store."""
    _check_folder("workflow_store", options)
    _check_file("cpp_log_config", options)


def _check_file(name: str, options: argparse.Namespace) -> None:
    place = getattr(options, name)
    if place and not Path(place).is_file():
        raise Refused(f"--{name.replace('_', '-')} file not found: {os.path.realpath(place)}")


def _check_folder(name: str, options: argparse.Namespace) -> None:
    place = getattr(options, name)
    if place and not Path(place).is_dir():
        raise Refused(f"--{name.replace('_', '-')} directory not found: {place}")


class Refused(Exception):
    """Ends the command with a sentence on standard output, as the original says it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def settings_of(options: argparse.Namespace) -> Mapping[str, SourceSetting]:
    """Return the properties that flags stand for."""
    values: Mapping[str, tuple[str, str]] = {
        "model_store": ("--model-store", options.model_store),
        "workflow_store": ("--workflow-store", options.workflow_store),
        "load_models": ("--models", ",".join(options.models)),
        "plugins_path": ("--plugins-path", options.plugins_path),
        "cpp_log_config": ("--cpp-log-config", options.cpp_log_config),
        "disable_token_authorization": (
            "--disable-token-auth",
            "true" if options.disable_token_auth else "",
        ),
        "enable_model_api": ("--enable-model-api", "true" if options.enable_model_api else ""),
    }
    return {
        name: SourceSetting(value, Origin("the command line", flag))
        for name, (flag, value) in values.items()
        if value
    }


def notices_of(options: argparse.Namespace) -> Sequence[str]:
    """Return what is to be said of flags that stand for no property."""
    found = []
    if options.log_config:
        found.append(
            f"--log-config {options.log_config} has no effect: it is for Java's log4j. Levels are set by "
            "TRIVIUM_LOG_LEVEL, places by LOG_LOCATION."
        )
    return found
