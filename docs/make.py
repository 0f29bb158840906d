"""Writes the parts of the manual that are made from code, between `<!-- made: NAME -->` and `<!-- end -->`.

`python docs/make.py` writes them and says what it changed; with `--check` it only fails if one is out of date.
"""

import json
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from trivium.catalogue import CATALOGUE
from trivium.codecs import grpc_status
from trivium.codecs.error_table import HTTP_STATUS
from trivium.codecs.payload_table import READERS, WRITERS
from trivium.engines.hf.tasks.task_requests import PARAMETERS as TASK_PARAMETERS
from trivium.profiles import HTTP
from trivium.servers.djl.command.keys import CONFIG as DJL_CONFIG
from trivium.servers.djl.words.engines import ENGINES as DJL_ENGINES
from trivium.servers.djl.words.engines import LANGUAGE_MODEL as DJL_LANGUAGE_MODEL
from trivium.servers.djl.words.engines import PYTHON as DJL_PYTHON
from trivium.servers.djl.words.engines import VLLM_MODEL as DJL_VLLM_MODEL
from trivium.servers.djl.words.engines import row_of
from trivium.servers.djl.words.language_model_keys import LMI_OPTIONS
from trivium.servers.djl.words.lmi_runtimes import HANDLERS, ROLLING_BATCHES, LmiRuntime
from trivium.servers.torchserve.command.properties_table import CONFIG as TORCHSERVE_CONFIG
from trivium.servers.torchserve.words.keys import ROWS as MODEL_CONFIG
from trivium.servers.triton.command.flag_table import FLAGS
from trivium.servers.triton.command.flags import PRESENCE
from trivium.servers.triton.words.keys import ROWS
from trivium.settings.setting import Setting, Support
from trivium.types.access import AccessScope
from trivium.types.state import ITEM_MOVES, SERVER_MOVES, VERSION_MOVES
from trivium.wires.prometheus import signals

DOCS = Path(__file__).parent
SCHEMA = CATALOGUE.schema


def diagram(moves) -> str:
    """A state table as a Mermaid diagram."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {next(iter(moves)).name}"]
    for state, following in moves.items():
        lines += [f"    {state.name} --> {after.name}" for after in sorted(following, key=lambda s: s.name)]
        if not following:
            lines.append(f"    {state.name} --> [*]")
    return "\n".join([*lines, "```"])


def table(columns: Mapping[str, Callable[[Setting], str]], rows: Iterable[Setting]) -> str:
    """A table of settings: the heading of each column, and what it shows of a row."""
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(show(row) for show in columns.values())} |" for row in rows)])


def _name(row: Setting) -> str:
    return f"`{row.name}`"


def _value(row: Setting) -> str:
    return f"{row.kind.in_manual}{', repeatable' if row.repeats else ''}"


def _default(row: Setting) -> str:
    default = str(row.default).lower() if isinstance(row.default, bool) else str(row.default)
    return "" if row.repeats or row.kind is PRESENCE or not default else f"`{default}`"


def _support(row: Setting) -> str:
    return row.support.value


def _how(row: Setting) -> str:
    return row.how


def settings(what: str, rows: Iterable[Setting]) -> str:
    """Every setting of a table, what it may be, what holds without it, and what becomes of it."""
    columns = {what: _name, "value": _value, "default": _default, "served": _support, "what differs": _how}
    return table(columns, rows)


def options() -> str:
    """Every server option, a section per group: flag, variable, key in the group's table, default, meaning."""
    columns = {
        "flag": lambda option: f"`{option.flag}`",
        "variable": lambda option: f"`{option.variable}`",
        "key in the file": lambda option: f"`{option.key}`",
        "default": lambda option: f"`{option.default!r}`",
        "meaning": lambda option: option.help,
    }
    common = ", ".join(f"`{option.flag}`" for option in SCHEMA.options.values() if option.is_common)
    lines = [f"Most used: {common}."]
    for group, title in SCHEMA.groups.items():
        lines += ["", f"## {title}: `[{group}]`", "", table(columns, SCHEMA.keys[group].values())]
    return "\n".join(lines)


def triton_keys() -> str:
    """Every field of a config.pbtxt and what becomes of it."""
    columns = {"field": _name, "served": _support, "what happens instead": _how}
    return table(columns, ROWS.values())


def language_model_options() -> str:
    """Every option of LMI: who knew it, what it may be, and what becomes of it with the engine and with a handler."""
    lines = [
        "| key | known to | value | default | with `hf` | with `vllm` | with a handler |",
        "|---" * 7 + "|",
    ]
    for key, option in LMI_OPTIONS.items():
        row = option.setting
        known = ", ".join(runtime.name for runtime in option.runtimes) or "Trivium"
        words = "used" if row.support is Support.YES else row.support.value.removeprefix("no, ")
        fate = f"{words}: {row.how}" if row.how else words
        if option.refuses:
            fate += f"; refused: {', '.join(f'`{word}`' for word in option.refuses)}"
        default = f"`{row.default}`" if row.default else ""
        handled = row_of(DJL_PYTHON, key).support.value.removeprefix("no, ")
        handled = "used" if handled == "yes" else handled
        value = row.kind.in_manual.replace("|", "\\|")
        passed = DJL_VLLM_MODEL.keys[key]
        own = passed.how if passed.how != row.how else "as with `hf`"
        lines.append(f"| `{key}` | {known} | {value} | {default} | {fate} | {own} | {handled} |")
    return "\n".join(lines)


def language_model_runtimes() -> str:
    """Every word by which a folder asks for a runtime of DJL's, and what became of that."""
    lines = ["| word | runtime | upstream |", "|---|---|---|"]
    for word, runtime in ROLLING_BATCHES.items():
        lines.append(f"| `option.rolling_batch={word}` | {runtime.name} | {_upstream(runtime)} |")
    for entry, handler in HANDLERS.items():
        lines.append(
            f"| `option.entryPoint={entry}` | {handler.runtime.name} | {_upstream(handler.runtime)} |"
        )
    return "\n".join(lines)


def _upstream(runtime: LmiRuntime) -> str:
    return f"removed in {runtime.removed}: write `option.rolling_batch=auto`" if runtime.removed else "there"


def task_parameters() -> str:
    """What a request to a model of texts may say, by its task."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for task, rows in TASK_PARAMETERS.items():
        grouped.setdefault(tuple(rows), []).append(f"`{task.value}`")
    lines = ["| task | parameters |", "|---|---|"]
    for names, tasks in grouped.items():
        lines.append(f"| {', '.join(tasks)} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines)


def statuses() -> str:
    """The error table of the v2 protocol."""
    lines = ["| why | status |", "|---|---|"]
    return "\n".join([*lines, *(f"| {code.value} | {status} |" for code, status in HTTP_STATUS.items())])


def rpc_statuses() -> str:
    """The error table of the v2 protocol over gRPC."""
    words = {
        number: name for name, number in vars(grpc_status).items() if name.isupper() and type(number) is int
    }
    lines = ["| why | status |", "|---|---|"]
    rows = grpc_status.STATUS.items()
    return "\n".join([*lines, *(f"| {code.value} | `{words[status]}` |" for code, status in rows)])


def route_owners() -> str:
    """Which protocol owns which routes, per profile."""
    listeners = {
        name: next(each for each in profile.listeners if each.name == HTTP)
        for name, profile in CATALOGUE.profiles.items()
    }
    owners_of = {
        name: {route.prefix: route.protocol for route in each.routes} for name, each in listeners.items()
    }
    segments = sorted({segment for owners in owners_of.values() for segment in owners})
    lines = [f"| route | {' | '.join(owners_of)} |", "|---" * (1 + len(owners_of)) + "|"]
    for segment in segments:
        cells = [owners.get(segment, "") for owners in owners_of.values()]
        lines.append(f"| `/{segment}` | {' | '.join(cells)} |")
    return "\n".join(
        [*lines, f"| all else is refused by | {' | '.join(each.fallback for each in listeners.values())} |"]
    )


def accepted_differences() -> str:
    """Where the profile `triton` answers otherwise than the original, as the suite beside it knows."""
    found = runpy.run_path(str(DOCS.parent / "tests/e2e/side_by_side/differences.py"))["ACCEPTED"]
    lines = ["| what | Triton | here | why |", "|---|---|---|---|"]
    return "\n".join(
        [*lines, *(f"| {each.what} | {each.triton} | {each.trivium} | {each.reason} |" for each in found)]
    )


def torchserve_differences() -> str:
    """Where `trivium torchserve` answers otherwise than the original, as the suite beside its record knows."""
    found = runpy.run_path(str(DOCS.parent / "tests/e2e/torchserve_beside/differences.py"))["ACCEPTED"]
    lines = ["| what | TorchServe | here | why |", "|---|---|---|---|"]
    return "\n".join(
        [*lines, *(f"| {each.what} | {each.torchserve} | {each.trivium} | {each.reason} |" for each in found)]
    )


def djl_python_names() -> str:
    """Every name of DJL's Python package that is served, with its parameters, and in what it differs."""
    lines = ["| name | served |", "|---|---|"]
    oracle = DOCS.parent / "tests/oracle/djl_python"
    accepted = runpy.run_path(str(oracle / "differences.py"))["ACCEPTED"]
    for name, parameters in json.loads((oracle / "record.json").read_text())["signatures"].items():
        shown = ", ".join(_parameter(*each) for each in parameters if each[0] != "self")
        but = [row.what for row in accepted if any(called == name for called, _ in row.calls)]
        lines.append(f"| `{name}({shown})` | yes{', but see below: ' if but else ''}{'; '.join(but)} |")
    return "\n".join(lines)


def _parameter(name: str, kind: str, default: str) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(kind, "")
    return f"{stars}{name}{f'={default}' if default else ''}"


def djl_python_differences() -> str:
    """Where `djl_python` differs from the original package, as the test beside its record knows."""
    found = runpy.run_path(str(DOCS.parent / "tests/oracle/djl_python/differences.py"))
    lines = ["| what | DJL | here | why |", "|---|---|---|---|"]
    lines += [f"| {each.what} | {each.djl} | {each.trivium} | {each.reason} |" for each in found["ACCEPTED"]]
    lines += [f"| parameters of `{name}` | | {what} | |" for name, what in found["SIGNATURES"].items()]
    return "\n".join(lines)


# What people have: the files of the originals' public repositories, as `tests/contract/test_corpora.py` reads them.
CORPORA = DOCS.parent / "tests" / "fixtures" / "corpora"
WHOSE = {
    "config.pbtxt": "Triton's, repositories of one model or several",
    "torchserve.config.properties": "TorchServe's and KServe's",
    "model-config.yaml": "TorchServe's",
    "djl.config.properties": "DJL Serving's",
    "serving.properties": "DJL Serving's, of its tests, its manual and its demos",
    "workflow.json": "DJL Serving's",
}
_FIELD = re.compile(r"([a-z][a-z0-9_]*)(?=: | ?[{[])")


def _corpus(name: str) -> list[Mapping[str, object]]:
    return [json.loads(line) for line in (CORPORA / f"{name}.jsonl").read_text().splitlines()]


def corpora_counts() -> str:
    """How many files of each kind there are, and how many are served."""
    lines = ["| file | whose | seen | served |", "|---|---|---|---|"]
    for name, whose in WHOSE.items():
        entries = _corpus(name)
        served = sum("refused" not in entry for entry in entries)
        file = name.removeprefix("djl.").removeprefix("torchserve.")
        lines.append(f"| `{file}` | {whose} | {len(entries)} | {served} |")
    return "\n".join(lines)


def _words(row: Setting | None) -> str:
    return "" if row is None else f"{row.support.value}{f': {row.how}' if row.how else ''}"


def _djl_words(key: str) -> str:
    """What becomes of a line of serving.properties, by engine where it differs."""
    said: dict[str, list[str]] = {}
    for engine in (*DJL_ENGINES, DJL_LANGUAGE_MODEL):
        if key in engine.keys:
            said.setdefault(_words(engine.keys[key]), []).append(engine.name)
    if len(said) == 1:
        return next(iter(said))
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in said.items())


def _pbtxt_words(name: str) -> str:
    rows = dict.fromkeys(_words(row) for key, row in ROWS.items() if key.rpartition(".")[2] == name)
    return "; ".join(rows)


def corpora_keys(name: str, otherwise: str, words: Callable[[str], str]) -> str:
    """Every key of the files of one kind, in how many of them it stands, and what becomes of it."""
    counts: dict[str, int] = {}
    for entry in _corpus(name):
        found = entry.get("properties") or entry.get("document") or ()
        if models := entry.get("models"):
            fields = " ".join(field for model in models.values() for field in model["fields"])
            found = _FIELD.findall(re.sub(r'"(?:[^"\\\\]|\\\\.)*"', '""', fields))
        for key in dict.fromkeys(found):
            counts[key] = counts.get(key, 0) + 1
    grouped: dict[str, list[str]] = {}
    for key, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        grouped.setdefault(words(key) or otherwise, []).append(f"`{key}` ({count})")
    lines = ["| what becomes of it | keys, and in how many files |", "|---|---|"]
    order = sorted(grouped, key=lambda said: (said.split(":")[0] not in ("yes", "partly", "passed on"), said))
    return "\n".join([*lines, *(f"| {said} | {', '.join(grouped[said])} |" for said in order)])


def matrix(content: str) -> str:
    """Every format through every protocol, as the suite that asks them expects it."""
    table = runpy.run_path(str(DOCS.parent / "tests/e2e/matrix.py"))
    lines = [f"| | {' | '.join(table['PROTOCOLS'])} |", "|---" * (1 + len(table["PROTOCOLS"])) + "|"]
    rows = table["EXPECTED"][content]
    return "\n".join([*lines, *(f"| {form} | {' | '.join(cells)} |" for form, cells in rows.items())])


def engine_matrix() -> str:
    """Every engine's file in every dress by every body, as the suite that asks them expects it."""
    table = runpy.run_path(str(DOCS.parent / "tests/e2e/engine_matrix.py"))
    lines = [f"| engine | in | {' | '.join(table['BODIES'])} |", "|---" * (2 + len(table["BODIES"])) + "|"]
    for engine, dresses in {**table["DRESSES"], **table["APART"]}.items():
        for dress in dresses:
            cells = (table["cell"](engine, dress, body) for body in table["BODIES"])
            lines.append(f"| `{engine}` | {dress} | {' | '.join(cells)} |")
    return "\n".join(lines)


def payload_readers() -> str:
    """The payload table, bodies to tensors."""
    lines = ["| content types | or the first bytes | what is read |", "|---|---|---|"]
    for row in READERS:
        lines.append(f"| {_types(row.media_types)} | {row.beginning} | {row.rule} |")
    return "\n".join(lines)


def payload_writers() -> str:
    """The payload table, tensors to bodies."""
    lines = ["| content types | what is written |", "|---|---|"]
    return "\n".join([*lines, *(f"| {_types(row.media_types)} | {row.rule} |" for row in WRITERS)])


def _types(names) -> str:
    return ", ".join(f"`{name}`" for name in names)


def access_scopes() -> str:
    """Every route and RPC with the scope that it needs."""
    lines = ["| scope | protocol | method and path |", "|---|---|---|"]
    rows = [
        (row.scope, name, f"{row.method} {row.path}")
        for name, entry in CATALOGUE.http.items()
        for row in entry.ENDPOINTS
    ]
    rows += [
        (scope, f"{name}, gRPC", method.rpartition("/")[2])
        for name, entry in CATALOGUE.rpc.items()
        for method, scope in entry.SCOPES.items()
    ]
    order = list(AccessScope)
    grouped: dict[tuple[AccessScope, str], list[str]] = {}
    for scope, name, route in sorted(rows, key=lambda row: order.index(row[0])):
        grouped.setdefault((scope, name), []).append(f"`{route}`")
    return "\n".join(
        [*lines, *(f"| {s.value} | {name} | {', '.join(them)} |" for (s, name), them in grouped.items())]
    )


def decisions() -> str:
    """Every decision with its status: accepted, where its page says nothing else."""
    lines = ["| decision | status |", "|---|---|"]
    for page in sorted((DOCS / "adr").glob("[0-9]*.md")):
        title, _, text = page.read_text().partition("\n")
        found = re.search(r"\*\*Status:\*\* (.+?)(?<!\d)[.:;]?\n\n", text, re.DOTALL)
        status = " ".join(found[1].split()) if found else "accepted"
        lines.append(f"| [{title.removeprefix('# ')}]({page.name}) | {status} |")
    return "\n".join(lines)


def chart_values() -> str:
    """Every value of the Helm chart: what holds without it, and what it is for."""
    chart = DOCS.parent / "deploy" / "helm" / "trivium"
    schema = json.loads((chart / "values.schema.json").read_text())
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    lines = ["| value | default | meaning |", "|---|---|---|"]
    for name, default, row in _chart_leaves(schema, defaults, ""):
        shown = json.dumps(default)
        said = f"one of {', '.join(row['enum'])}" if "enum" in row else ""
        most = f"{row['minimum']} to {row['maximum']}" if "maximum" in row else ""
        meaning = "; ".join(filter(None, (row["description"], said, most)))
        lines.append(f"| `{name}` | {'' if default in ('', [], {}) else f'`{shown}`'} | {meaning} |")
    return "\n".join(lines)


def _chart_leaves(schema: Any, defaults: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    for name, row in schema["properties"].items():
        if "properties" in row and "description" not in row:
            yield from _chart_leaves(row, defaults[name], f"{prefix}{name}.")
        elif name != "global":
            yield f"{prefix}{name}", defaults[name], row


PARTS: dict[str, Callable[[], str]] = {
    "decisions": decisions,
    "access scopes": access_scopes,
    "route owners": route_owners,
    "accepted differences": accepted_differences,
    "version states": lambda: diagram(VERSION_MOVES),
    "item states": lambda: diagram(ITEM_MOVES),
    "server states": lambda: diagram(SERVER_MOVES),
    "options": options,
    "triton keys": triton_keys,
    "tritonserver flags": lambda: settings("flag", FLAGS.values()),
    "v2 statuses": statuses,
    "v2 grpc statuses": rpc_statuses,
    "djl config keys": lambda: settings("key", DJL_CONFIG.rows.values()),
    "language model runtimes": language_model_runtimes,
    "language model options": language_model_options,
    "task parameters": task_parameters,
    "torchserve properties": lambda: settings("property", TORCHSERVE_CONFIG.rows.values()),
    "djl_python names": djl_python_names,
    "TorchServe differences": torchserve_differences,
    "djl_python differences": djl_python_differences,
    "matrix, picture": lambda: matrix("picture"),
    "matrix, tensor": lambda: matrix("tensor"),
    "matrix, engines": engine_matrix,
    "corpora": corpora_counts,
    "corpora, config.pbtxt": lambda: corpora_keys(
        "config.pbtxt", "an entry of a map, or wrong", _pbtxt_words
    ),
    "corpora, TorchServe properties": lambda: corpora_keys(
        "torchserve.config.properties",
        "reported: no property of TorchServe's",
        lambda key: _words(TORCHSERVE_CONFIG.find(key)),
    ),
    "corpora, model-config.yaml": lambda: corpora_keys(
        "model-config.yaml", "passed on: the handler's own", lambda key: _words(MODEL_CONFIG.get(key))
    ),
    "corpora, DJL properties": lambda: corpora_keys(
        "djl.config.properties", "reported: no key of DJL's", lambda key: _words(DJL_CONFIG.find(key))
    ),
    "corpora, serving.properties": lambda: corpora_keys(
        "serving.properties", "passed on to a handler; reported for models without one", _djl_words
    ),
    "payload readers": payload_readers,
    "payload writers": payload_writers,
    "chart values": chart_values,
}


def made(text: str) -> str:
    """A page with its made parts as the code has them now."""
    for name, make in PARTS.items():
        start, end = f"<!-- made: {name} -->", "<!-- end -->"
        if start in text:
            head, rest = text.split(start)
            text = f"{head}{start}\n{make()}\n{end}{rest.split(end, 1)[1]}"
    return text


FILES: Mapping[Path, Callable[[], str]] = {
    DOCS / "signals" / "dashboard.json": signals.dashboard,
    DOCS / "signals" / "alerts.yml": signals.rules,
}
"""Files that are made as a whole."""


def made_now(path: Path) -> str:
    """What a page, or a file that is made, has to be."""
    return FILES[path]() if path in FILES else made(path.read_text())


def outdated() -> list[Path]:
    """Pages whose made parts are not what the code says, and files that are not."""
    paths = [*sorted(DOCS.rglob("*.md")), *FILES]
    return [path for path in paths if not path.exists() or made_now(path) != path.read_text()]


def main() -> None:
    """Write or check."""
    stale = outdated()
    if "--check" in sys.argv:
        sys.exit(f"out of date, run `make docs`: {', '.join(map(str, stale))}" if stale else 0)
    for page in stale:
        page.parent.mkdir(exist_ok=True)
        page.write_text(made_now(page))
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
