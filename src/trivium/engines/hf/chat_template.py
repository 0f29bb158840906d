"""Tries a chat template before anybody chats: whether it is one, and what it makes of a chat of one message.

As transformers does it, with its words and in a sandbox, but without transformers, which takes seconds to come.
"""

import json
import resource
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from trivium.engines.hf.call_guard import CallGuard
from trivium.types.errors import named

FILE = "chat_template.jinja"
_SECONDS = 5.0
_BYTES = 2**30
"""That a template may take, beside what the process has."""

_NAME = "<template>"
_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")
_WAY_OUT = "Until it is corrected chats are refused, and prompts are served."


class _Refused(Exception):
    """Raised by a template that does not want such a chat, which is its right."""


def template_of(folder: Path, tokenizer_config: Mapping[str, object]) -> tuple[str, str]:
    """Return where a folder's template is written, and its text; empty for none."""
    try:
        return str(folder / FILE), (folder / FILE).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        written = tokenizer_config.get("chat_template")
    if isinstance(written, list):  # several, by their names
        by_name = {one.get("name"): one.get("template") for one in written if isinstance(one, Mapping)}
        written = by_name.get("default")
    return f"{folder / 'tokenizer_config.json'} (chat_template)", written if isinstance(written, str) else ""


def template_fault(place: str, text: str, tokenizer_config: Mapping[str, object]) -> str:
    """Return a sentence for a template that cannot write a chat; empty where it can."""
    try:
        import jinja2
    except ImportError:  # whoever chats is told
        return ""
    if threading.current_thread() is not threading.main_thread():
        return ""  # where nobody could end it
    values = {name: _token(tokenizer_config.get(name)) for name in _TOKENS}

    def tried() -> None:
        template = _environment().from_string(text)  # which computes already what it can
        chat = [{"role": "user", "content": "Hello"}]
        template.render(messages=chat, tools=None, documents=None, add_generation_prompt=True, **values)

    guard = CallGuard(_SECONDS, subject="chat template")
    try:
        with _bounded_memory():
            guard.call(place, tried)
    except _Refused:
        return ""
    except (KeyboardInterrupt, SystemExit):
        raise
    except jinja2.TemplateSyntaxError as error:
        return _sentence(place, error.lineno, f"is no template of Jinja: {error.message}")
    except BaseException as error:  # CallTooLong is none of Exception
        at = _line(error.__traceback__)
        return _sentence(place, at, f"cannot write a chat of one message: {named(error)}")
    finally:
        guard.close()
    return ""


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """Let the process take only so much more memory, where the system tells how much it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        pages = int(Path("/proc/self/statm").read_text().partition(" ")[0])
        most = pages * resource.getpagesize() + _BYTES
        if soft == resource.RLIM_INFINITY or most < soft:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (OSError, ValueError):
        pass
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _sentence(place: str, line: int | None, fault: str) -> str:
    at = f"{place}:{line}" if line else place
    expected = "expected a template that writes messages with 'role' and 'content'"
    return f"The chat template {at} {fault[:400].rstrip('.')}; {expected}. {_WAY_OUT}"


def _token(written: object) -> str:
    content = written.get("content") if isinstance(written, Mapping) else written
    return content if isinstance(content, str) else ""


def _line(trace: TracebackType | None) -> int | None:
    """Return the line of the template that an error went through last."""
    found = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _NAME:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _environment() -> Any:
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.ext import loopcontrols as loop_controls
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """Lets pass the tag that marks what a model has written."""

        tags = {"generation"}  # noqa: RUF012 - jinja's own form

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    def refuse(message: str) -> None:
        raise _Refused(message)

    def as_json(value: object, **how: Any) -> str:
        how.setdefault("ensure_ascii", False)
        return json.dumps(value, **how)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loop_controls]
    )
    made.filters["tojson"] = as_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    return made
