"""Answers of the language model -> what an output formatter makes of its tokens one by one, or of its documents.

Without such a function, or where the request itself names one of the server's, the answer passes as it is.
"""

import ast
import inspect
import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from trivium_worker.dialects.djl.engine_requests import Question, as_body
from trivium_worker.dialects.djl.result import formatted
from trivium_worker.runtime.adapter import Answer
from trivium_worker.wire.values import Failure, Raw

_EVENT = "data: "
_MOST_MEMBERS = 4


class PassingOn:
    """Passes on what the model answers, which is asked as it is. `answer` says how that is wanted, `kind` is its
    content type once something is written.
    """

    answer = ""
    kind = ""

    def body(self, question: Question) -> bytes:
        """Return what the model is asked. Raises Failure."""
        return as_body(question.document)

    def written(self, answer: Answer) -> bytes:
        """Return the bytes of a part of the answer; nothing where they wait for others."""
        if not isinstance(answer.payload, Raw) or not answer.payload.parts:
            return b""
        part = answer.payload.parts[0]
        self.kind = part.content_type
        return bytes(part.data)

    def failed(self, message: str) -> bytes:
        """Return the last bytes of an answer that the model cannot go on with; nothing: the server writes them."""
        return b""


class OfResponses(PassingOn):
    """Has each document of the answer changed by a function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def body(self, question: Question) -> bytes:
        """See `PassingOn`."""
        document = {key: value for key, value in question.document.items() if not callable(value)}
        return as_body(document)

    def written(self, answer: Answer) -> bytes:
        """See `PassingOn`."""
        data = super().written(answer)
        if not data:
            return b""
        text = data.decode("utf-8", "replace")
        if self.kind == "application/json":
            return self._changed(text)
        return b"".join(self._lines(text))

    def _lines(self, text: str) -> Iterator[bytes]:
        """Yield each line, or event, of an answer in pieces."""
        for line in text.splitlines():
            is_event = line.startswith(_EVENT)
            inner = line[len(_EVENT) :] if is_event else line
            if not inner.startswith("{"):
                yield f"{line}\n\n".encode() if line else b""
            elif is_event:
                yield _EVENT.encode() + self._changed(inner) + b"\n\n"
            else:
                made = self._changed(inner)
                yield made if made.endswith(b"\n") or not made else made + b"\n"

    def _changed(self, text: str) -> bytes:
        response = Response.of(json.loads(text))
        made = self._function(response)
        if made is None:
            return b""
        if made is response:
            made = response.told()
        if hasattr(made, "model_dump_json"):
            made = made.model_dump_json()
        if isinstance(made, (str, bytes)):
            return formatted(made, None)
        return json.dumps(made, ensure_ascii=False).encode()


class Response(dict):  # type: ignore[type-arg]
    """A document whose members are attributes, too, as functions for vLLM's responses expect. One of LMI's own has
    `choices` beside its `generated_text`.
    """

    @classmethod
    def of(cls, value: Any) -> Any:
        """Return a document with all that is in it."""
        if isinstance(value, list):
            return [cls.of(one) for one in value]
        if not isinstance(value, dict):
            return value
        made = cls({key: cls.of(one) for key, one in value.items()})
        if isinstance(value.get("generated_text"), str):
            choice = cls(index=0, text=value["generated_text"], finish_reason=None)
            about = {"model": "lmi", "object": "text_completion", "_first": value["generated_text"]}
            vars(made).update(choices=[choice], **about)
        return made

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            vars(self)[name] = value
        else:
            self[name] = value

    def told(self) -> "Response":
        """Return the document with a text that was set in its choice."""
        own = vars(self)
        if "choices" in own and self.get("generated_text") == own["_first"]:
            self["generated_text"] = own["choices"][0]["text"]
        return self

    def model_dump(self, **named: Any) -> dict[str, Any]:
        """Return it as a plain dict."""
        return dict(self)


class OfTokens(PassingOn):
    """Has a function write the answer, called for each token."""

    answer = "tokens"

    def __init__(self, question: Question, function: Callable[..., Any]) -> None:
        from djl_python.request import Request

        given = question.request
        given.output_formatter, given.tgi_compat = function, question.is_tgi
        given.parameters.pop("output_formatter", None)
        self._request = Request(given)
        self._open: set[int] = set()

    def body(self, question: Question) -> bytes:
        """See `PassingOn`."""
        return as_body(question.of_tokens())

    def written(self, answer: Answer) -> bytes:
        """See `PassingOn`."""
        data = super().written(answer)
        self.kind = ""  # a function of user code says none
        if not data:
            return b""
        told = json.loads(data)
        if "sequences" not in told:
            raise Failure(
                "The output formatter wants tokens, and the model answers whole. Write option.rolling_batch=auto.",
                "model failed",
                424,
            )
        return "".join(self._texts(told, answer.final)).encode("utf-8", "surrogatepass")

    def failed(self, message: str) -> bytes:
        """See `PassingOn`: a last token tells the function."""
        from djl_python.request_io import Token

        self._request.set_next_token(
            Token(-1, "", -1, error_msg=message), last_token=True, finish_reason="error"
        )
        return self._next().encode("utf-8", "surrogatepass")

    def _texts(self, told: dict[str, Any], is_final: bool) -> Iterator[str]:
        from djl_python.request_io import Token

        output = self._request.request_output
        if "prompt" in told:
            output.prompt_tokens_details = [Token(one, "") for one in told["prompt"]]
        steps = [(one, at) for one in told["sequences"] for at in range(len(one["tokens"]))]
        for number, (sequence, at) in enumerate(steps):
            id, text, log_prob, is_special, alternatives = sequence["tokens"][at]
            token, index = Token(id, text, log_prob, is_special or None), sequence["index"]
            is_last = sequence["finish"] is not None and at == len(sequence["tokens"]) - 1
            token.request_id = output.request_id
            output.set_next_token(token, index, is_last, sequence["finish"] if is_last else None)
            if alternatives:
                output.set_next_top_tokens([Token(*one) for one in alternatives], index)
            output.finished = is_final and number == len(steps) - 1
            if output.finished:
                self._settle()
            self._request.last_token = output.finished
            yield self._next()

    def _settle(self) -> None:
        """Say which sequence is the best, once all are there."""
        output = self._request.request_output
        output.other_sequences_indices = sorted(output.sequences.keys() - {output.best_sequence_index})

    def _next(self) -> str:
        text = self._request.get_next_token()
        self._request.reset_next_token()
        return text


def unpack_as(module: ModuleType) -> None:
    """Have sequences give each token with its index, as releases since 0.32 do, where a module unpacks four members."""
    import djl_python.request_io

    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
            continue
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == "get_next_token":
            djl_python.request_io.MEMBERS_OF_NEXT = 4 if len(node.targets[0].elts) == _MOST_MEMBERS else 3


def writer_for(question: Question, function: Callable[..., Any] | None) -> PassingOn:
    """Return what writes the answer to a question."""
    asked = question.formatter
    if callable(asked):
        function = asked
    elif asked:
        return PassingOn()
    if function is None:
        return PassingOn()
    return OfTokens(question, function) if _takes_output(function) else OfResponses(function)


def _takes_output(function: Callable[..., Any]) -> bool:
    """Tell whether a function takes tokens, in one of the two forms; another takes the response."""
    from djl_python.request import takes_tokens
    from djl_python.request_io import RequestOutput

    if takes_tokens(function):
        return True
    first = next(iter(inspect.signature(function).parameters.values()), None)
    noted = None if first is None else first.annotation
    if isinstance(noted, str):
        return noted.rpartition(".")[2].strip("'\"") in ("RequestOutput", "TextGenerationOutput")
    return isinstance(noted, type) and issubclass(noted, RequestOutput)
