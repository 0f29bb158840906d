"""The command lines that a TorchServe is given: all of its options, and all ways to start wrongly.

Each line is run in a folder of its own, with a model store `store` that holds the model `one`, files of the names that
`FILES` has, and a `config.properties` with addresses that are free. Knows neither of the two servers.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

FILES: Mapping[str, str] = {
    "log4j.xml": "<Configuration/>\n",
    "cpp.yaml": "",
    "no_words.properties": "",
    "taken.pid": "",
}
"""Files that are there; `config.properties` and what a line brings along come to them."""

MODEL: Mapping[str, str] = {
    "MAR-INF/MANIFEST.json": '{"createdOn": "01/01/2024 00:00:00", "runtime": "python", "model": {"modelName": "one", '
    '"handler": "handler.py", "modelVersion": "1.0"}, "archiverVersion": "0.12.0"}',
    "handler.py": "def handle(data, context):\n    return data and [b'one'] * len(data)\n",
}
"""The files of the model `one`, a folder in the store."""


@dataclass(frozen=True)
class Line:
    """A command line that ends by itself: its words, its environment, what the configuration has besides, and files."""

    words: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


STORE = ("--model-store", "store")
START = ("--start", "--foreground", *STORE)


def _line(*words: str, text: str = "", **variables: str) -> Line:
    return Line(words, variables, text)


def _pid(text: str, *words: str) -> Line:
    return Line(words, files={".model_server.pid": text})


NOBODY = "999999999"
"""A process number that no machine gives."""

ENDING: Mapping[str, Line] = {
    "nothing": _line(),
    "start": _line("--start"),
    "foreground": _line("--foreground"),
    "version": _line("--version"),
    "version, short": _line("-v"),
    "version, cut short": _line("--vers"),
    "help": _line("--help"),
    "help, short": _line("-h"),
    "stop": _line("--stop"),
    "stop and wait": _line("--stop", "--foreground"),
    "stop with other options": _line("--stop", "--model-store", "nowhere", "--ts-config", "nowhere"),
    "start and stop": _line("--start", "--stop"),
    "start and version": _line("--start", "--version"),
    "stop and version": _line("--stop", "-v"),
    "an option that there is not": _line("--strat"),
    "an option of Java's": _line("-ncs"),
    "a word that is no option": _line("--start", "store"),
    "an option cut short that may be two": _line("--model", "store"),
    "two options cut short that may be two": _line("--st"),
    "no store after its option": _line("--start", "--model-store"),
    "no configuration after its option": _line("--start", *STORE, "--ts-config"),
    "no models after their option": _line("--start", *STORE, "--models"),
    "a value for a flag": _line("--start=yes"),
    "no store": _line("--start", "--models", "one"),
    "an empty store": _line("--start", "--model-store", ""),
    "a store that is not there": _line("--start", "--model-store", "nowhere"),
    "a store that is a file": _line("--start", "--model-store", "log4j.xml"),
    "a store, cut short, that is not there": _line("--model-s", "nowhere"),
    "a store by = that is not there": _line("--start", "--model-store=nowhere"),
    "two stores, the last not there": _line("--start", *STORE, "--model-store", "nowhere"),
    "a store of the configuration that is not there": _line(
        "--start", "--ts-config", "config.properties", text="model_store=nowhere\n"
    ),
    "no store in the configuration": _line("--start", "--ts-config", "no_words.properties"),
    "a configuration that is not there": _line("--start", *STORE, "--ts-config", "nowhere"),
    "a configuration that is a folder": _line("--start", *STORE, "--ts-config", "store"),
    "a configuration by the variable that is not there": _line("--start", *STORE, TS_CONFIG_FILE="nowhere"),
    "a configuration by the variable before that of the line": _line(
        "--start", *STORE, "--ts-config", "config.properties", TS_CONFIG_FILE="nowhere"
    ),
    "a log configuration that is not there": _line("--start", *STORE, "--log-config", "nowhere"),
    "a log configuration that is a folder": _line("--start", *STORE, "--log-config", "store"),
    "a log configuration of C++ that is not there": _line("--start", *STORE, "--cpp-log-config", "nowhere"),
    "workflows that are not there": _line("--start", *STORE, "--workflow-store", "nowhere"),
    "workflows that are a file": _line("--start", *STORE, "--workflow-store", "log4j.xml"),
    "a folder for temporary files that is not there": _line("--start", *STORE, TEMP="nowhere"),
    "a folder for temporary files that is a file": _line("--start", *STORE, TEMP="log4j.xml"),
    "of all that is not there, the first": _line(
        "--start",
        *("--model-store", "nowhere", "--ts-config", "nowhere", "--log-config", "nowhere"),
        *("--cpp-log-config", "nowhere", "--workflow-store", "nowhere"),
        TEMP="nowhere",
    ),
    "of all but a log configuration": _line(
        "--start",
        *("--model-store", "nowhere", "--ts-config", "nowhere"),
        *("--cpp-log-config", "nowhere", "--workflow-store", "nowhere"),
        TEMP="nowhere",
    ),
    "of configuration and stores": _line(
        "--start",
        *("--model-store", "nowhere", "--ts-config", "nowhere"),
        *("--cpp-log-config", "nowhere", "--workflow-store", "nowhere"),
    ),
    "of stores": _line(
        "--start",
        *("--model-store", "nowhere", "--cpp-log-config", "nowhere", "--workflow-store", "nowhere"),
    ),
    "of workflows and a log configuration of C++": _line(
        "--start", *STORE, "--cpp-log-config", "nowhere", "--workflow-store", "nowhere"
    ),
    "no store, and workflows that are not there": _line("--workflow-store", "nowhere"),
    "no store, and a log configuration of C++ that is not there": _line("--cpp-log-config", "nowhere"),
    "no store, and a log configuration that is not there": _line("--log-config", "nowhere"),
    "no store, and a configuration that is not there": _line("--ts-config", "nowhere"),
    "an orphan's pid file, and the version": _pid(NOBODY, "--version"),
    "an orphan's pid file, and stop": _pid(NOBODY, "--stop"),
    "an orphan's pid file, and no store": _pid(NOBODY, "--start"),
    "a pid file of another program, and no store": _pid("1", "--start"),
    "a pid file without a number": _pid("some text", "--start"),
    "an empty pid file": _pid("", "--stop"),
    "a number below 0 in the pid file": _pid("-5", "--stop"),
}
"""Lines that end by themselves: status and first line are compared."""


@dataclass(frozen=True)
class Served:
    """A command line that starts a server in the foreground; `text` is what its configuration has besides."""

    words: Sequence[str] = START
    text: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def _served(*words: str, text: str = "", **variables: str) -> Served:
    return Served((*START, *words), text, variables)


SERVED: Mapping[str, Served] = {
    "no options": _served(),
    "without start": Served(("--foreground", *STORE)),
    "the configuration": _served("--ts-config", "config.properties"),
    "the configuration by its variable": _served(TS_CONFIG_FILE="config.properties"),
    "the store of the configuration": Served(
        ("--start", "--foreground", "--ts-config", "config.properties"), "model_store=store\n"
    ),
    "workflows": _served("--workflow-store", "store"),
    "a model": _served("--models", "one"),
    "a model under a name": _served("--models", "two=one"),
    "all models": _served("--models", "all"),
    "all models, in capitals": _served("--models", "ALL"),
    "a model that is not there": _served("--models", "nobody.mar"),
    "models of the configuration": _served(text="load_models=one\n"),
    "a model before those of the configuration": _served("--models", "two=one", text="load_models=one\n"),
    "a log configuration of C++": _served("--cpp-log-config", "cpp.yaml"),
    "no snapshots": _served("--no-config-snapshots"),
    "no snapshots, short": _served("--ncs"),
    "no snapshots, cut short": _served("--no-conf"),
    "plug-ins": _served("--plugins-path", "store"),
    "plug-ins, short": _served("--ppath", "store"),
    "no keys": _served("--disable-token-auth"),
    "no keys, short": _served("--dt"),
    "no keys, cut short": _served("--disable-token"),
    "no keys by the configuration": _served(text="disable_token_authorization=true\n"),
    "keys by the configuration, none by the line": _served(
        "--disable-token-auth", text="disable_token_authorization=false\n"
    ),
    "registering": _served("--disable-token-auth", "--enable-model-api"),
    "registering by the configuration": _served("--dt", text="enable_model_api=true\n"),
    "registering by the line, not by the configuration": _served(
        "--dt", "--enable-model-api", text="enable_model_api=false\n"
    ),
    "an orphan's pid file": Served((*START, "--dt"), files={".model_server.pid": NOBODY}),
    "a property of a wrong type": _served(text="job_queue_size=many\n"),
    "a property below its range": _served(text="job_queue_size=-1\n"),
    "a property that there is not": _served(text="job_queue_sise=1\n"),
    "JSON cut short": _served(text='models={"one": {"1.0": {\n'),
    "an unset variable": _served(text="metrics_config=$$NOBODY_SETS_THIS$$\n"),
    "an address that is none": _served(text="inference_address=nonsense\n"),
    "an address of nobody": _served(text="inference_address=http://192.0.2.1:8080\n"),
    "a certificate that is not there": _served(text="certificate_file=no.pem\nprivate_key_file=no.key\n"),
    "a file of metrics that is not there": _served(text="metrics_config=nowhere.yaml\n"),
    "an envelope that there is not": _served(text="service_envelope=nonsense\n"),
    "a regular expression that is none": _served(text="allowed_urls=(\n"),
}
"""Lines that start a server, or try to."""

_WIDE = re.compile(r"\s+")


def first_line(text: str, folder: str) -> str:
    """The first line that a command prints which is no line of a log, without the place of its folder. A usage, which
    is as wide as the screen, is its first word.
    """
    for line in text.splitlines():
        said = _WIDE.sub(" ", line.replace(folder, "FOLDER")).strip()
        if said.startswith("usage: torchserve"):
            return "usage: torchserve"
        if said and not _is_logged(said):
            return textwrap.shorten(said, 200)
    return ""


def _is_logged(said: str) -> bool:
    return bool(re.match(r"\d{4}-\d\d-\d\dT|WARNING: |nvidia-smi not available", said))
