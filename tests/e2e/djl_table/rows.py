"""The table: what is asked of a DJL server and what the sheet says comes of it, row by row.

The originals cannot run here. Each row names its section of the sheet; a row that the server answers otherwise is a
difference, and is listed with its reason or mended. Rows that ask the same of several paths are made from one.
"""

import io
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

SEED = 20261125
INFERENCE, MANAGEMENT = "inference", "management"
NO_ROUTE = ("ResourceNotFoundException", "Requested resource is not found, please refer to API document.")
NO_METHOD = ("MethodNotAllowedException", "Requested method is not allowed, please refer to API document.")


@dataclass(frozen=True)
class Row:
    """One request and its answer. `body` None: any; `error`: type and message of an error of the server. `headers` must
    be there with these values, those of `absent` must not. `stays`: whether the connection stays open. `holds` looks at
    headers and body, `note` tells rows apart that differ in their bodies alone.
    """

    section: str
    method: str
    url: str
    status: int
    send: bytes = b""
    fields: Mapping[str, str] = field(default_factory=dict)
    on: str = INFERENCE
    reason: str = ""
    body: bytes | None = None
    json: Any = None
    error: tuple[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    absent: Sequence[str] = ()
    holds: Callable[[Mapping[str, str], bytes], None] | None = None
    note: str = ""

    @property
    def stays(self) -> bool:
        """An answer from 400 on closes the connection (4.4)."""
        return self.status < 400

    @property
    def name(self) -> str:
        """Its name in the report of the tests."""
        asked = f"{self.method} {self.url[:60]} {self.note or repr(self.send[:12])} {dict(self.fields)}"
        return f"{self.section} {self.on[:4]} {asked}"[:110]


def rows() -> list[Row]:
    """Return all rows, in an order that the seed decides."""
    found = [*_routes(), *_inputs(), *_outcomes(), *_tensors(), *_management(), *_paging()]
    random.Random(SEED).shuffle(found)
    return found


# -- 4.1 and 4.2: routes -----------------------------------------------------------------------------------


def _routes() -> Iterator[Row]:
    for method in ("POST", "GET", "PUT", "DELETE", "PATCH", "BREW"):
        yield Row("4.1", method, "/predictions/obedient", 200, b"x", body=b"x")
    for url in ("/predictions/obedient/", "/models/obedient/invoke", "/invocations?model_name=obedient"):
        yield Row("4.1", "POST", url, 200, b"hello", body=b"hello")
    yield Row("4.2", "POST", "/invocations", 200, b"x", {"model_name": "obedient"}, body=b"x")
    attributes = {"X-Amzn-SageMaker-Custom-Attributes": "a=b;model_name=obedient"}
    yield Row("4.2", "POST", "/invocations", 200, b"x", attributes, body=b"x")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    yield Row("4.2", "POST", "/invocations", 200, b"model_name=obedient&data=y", form, body=b"y")
    yield Row(
        "4.2",
        "POST",
        "/invocations",
        400,
        b"x",
        error=("BadRequestException", "Parameter model_name is required."),
    )
    for url in (
        "/predictions",
        "/predictions/",
        "/nobody",
        "/",
        "/models",
        "/models/obedient",
        "/server/logging",
        "/workflows",
    ):
        yield Row("4.1", "GET", url, 404, error=NO_ROUTE)
    yield Row("4.1", "GET", "/predictions/a/b/c", 404, error=NO_ROUTE)
    for method in ("POST", "GET"):
        for url in ("/predictions/nobody", "/invocations?model_name=nobody", "/models/nobody/invoke"):
            if method == "POST" or url.startswith("/predictions"):
                gone = ("ModelNotFoundException", "Model or workflow not found: nobody")
                yield Row("4.6", method, url, 404, b"x", error=gone)
    for url in ("/", "/predictions/obedient"):
        yield Row("4.1", "OPTIONS", url, 200, body=b"{}\n")
    yield Row("4.1", "OPTIONS", "/predictions/nobody", 404)
    healthy = {name: {"status": "Healthy"} for name in ("mirror", "obedient", "doubled")}
    for method in ("GET", "POST", "PUT"):
        for on in (INFERENCE, MANAGEMENT):
            yield Row("4.8", method, "/ping", 200, json=healthy, on=on)


# -- 4.3: what a handler is given --------------------------------------------------------------------------


def _mirrored(row: Row, content: list[list[str]], **properties: str) -> Row:
    return replace(row, json={"properties": properties, "content": content})


def _inputs() -> Iterator[Row]:
    ask = Row("4.3", "POST", "/predictions/mirror", 200, b"hi")
    yield _mirrored(ask, [["data", "hi"]])
    yield _mirrored(replace(ask, send=b""), [["data", ""]])
    yield _mirrored(replace(ask, method="GET", send=b""), [["data", ""]])
    yield _mirrored(replace(ask, url="/predictions/mirror?a=1&b=2"), [["a", "1"], ["b", "2"], ["data", "hi"]])
    yield _mirrored(
        replace(ask, url="/predictions/mirror?adapter2=x%20y"), [["adapter2", "x y"], ["data", "hi"]]
    )
    yield _mirrored(replace(ask, fields={"X-Own": "v"}), [["data", "hi"]], **{"x-own": "v"})
    attributes = {"X-Amzn-SageMaker-Custom-Attributes": "a=b; c=d=e"}
    yield _mirrored(replace(ask, fields=attributes), [["data", "hi"]], a="b", c="d=e")
    yield _mirrored(replace(ask, fields={"x-request-id": "r7"}), [["data", "hi"]], requestId="r7")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    yield _mirrored(replace(ask, send=b"k=v&l=w+x", fields=form), [["k", "v"], ["l", "w x"]])
    parts = b'--b\r\nContent-Disposition: form-data; name="p"\r\n\r\nq\r\n' + (
        b'--b\r\nContent-Disposition: form-data; name="f"; filename="n.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\nz\r\n--b--\r\n"
    )
    multipart = {"Content-Type": "multipart/form-data; boundary=b"}
    yield _mirrored(replace(ask, send=parts, fields=multipart), [["p", "q"], ["f", "z"]])
    yield _mirrored(replace(ask, fields={"Content-Type": "application/json"}), [["data", "hi"]])
    for number in ("1", "10", "3", "-4"):
        yield _mirrored(replace(ask, fields={"x-priority": number}), [["data", "hi"]])
    yield Row("4.3", "POST", "/predictions/mirror", 400, b"x", {"x-priority": "soon"})
    for fields in (
        {"handler": "other"},
        {"Handler": "x"},
        {"X-Amzn-SageMaker-Custom-Attributes": "handler=x"},
    ):
        yield Row("4.3", "POST", "/predictions/mirror", 400, b"x", fields)
    for broken in (b"", b"--b\r\n", b"no boundary", parts[:-8]):
        yield Row("4.3", "POST", "/predictions/mirror", 400, broken, multipart)


# -- 4.4, 8.4 and 8.5: what becomes of a handler's answer --------------------------------------------------


def _outcomes() -> Iterator[Row]:
    url = "/predictions/obedient"
    always = {
        "pragma": "no-cache",
        "cache-control": "no-cache; no-store, must-revalidate, private",
        "expires": "Thu, 01 Jan 1970 00:00:00 UTC",
    }
    yield Row("4.4", "POST", url, 200, b"plain", body=b"plain", headers=always, absent=["content-type"])
    yield Row(
        "4.4", "POST", url, 200, b"x", {"x-request-id": "mine"}, body=b"x", headers={"x-request-id": "mine"}
    )
    yield Row(
        "4.4",
        "POST",
        url,
        418,
        b"teapot",
        reason="I am a teapot",
        body=b"short and stout",
        headers={"x-pot": "tea"},
    )
    yield Row("4.4", "POST", url, 201, b"created", reason="Made", body=b"made")
    yield Row(
        "4.4", "POST", url, 200, b"json", json={"a": [1, 2]}, headers={"content-type": "application/json"}
    )
    yield Row("4.4", "POST", url, 200, b"several", body=b"data wins")
    yield Row("4.4", "POST", url, 200, b"first", body=b"first")
    yield Row("4.4", "POST", url, 200, b"empty", body=b"")
    yield Row("8.5", "POST", url, 204, b"none", body=b"")
    failed = {"code": 424, "message": "invoke handler failure"}
    yield Row("8.5", "POST", url, 424, b"raise", json={**failed, "error": "it went wrong"})
    yield Row("8.5", "POST", url, 424, b"error", json={**failed, "error": "no such thing"})
    yield Row("8.5", "POST", url, 424, b"type")
    yield Row("8.5", "POST", url, 507, b"memory", reason="all is full", body=b"")
    yield Row("8.4", "POST", url, 200, b"stream", body=b"onetwo", headers={"transfer-encoding": "chunked"})
    yield Row("8.4", "POST", url, 200, b"breaks", body=b"onetwobroken off")
    lines = b'{"outputs": "one"}\n{"outputs": "two"}\n'
    yield Row(
        "8.4", "POST", url, 200, b"jsonlines", body=lines, headers={"content-type": "application/jsonlines"}
    )


# -- 9: tensors --------------------------------------------------------------------------------------------


def _npz(*arrays: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.savez(made, *arrays)
    return made.getvalue()


def _tensors() -> Iterator[Row]:
    url = "/predictions/doubled"
    array = np.array([[1, 2], [3, 4]], np.float32)
    npz = _npz(array)
    yield Row(
        "9.2", "POST", url, 200, npz, {"Content-Type": "tensor/npz"}, headers={"content-type": "tensor/npz"}
    )
    yield Row("9.2", "POST", url, 200, npz, headers={"content-type": "tensor/ndlist"})
    yield Row("9.2", "POST", url, 200, npz, {"Accept": "tensor/npz"}, headers={"content-type": "tensor/npz"})
    for body in (b"", b"short", b"not a list of tensors", npz[: len(npz) // 2], b"PK\x03\x04garbage garbage"):
        yield Row("9.1", "POST", url, 400, body)


# -- 5: management -----------------------------------------------------------------------------------------


def _management() -> Iterator[Row]:
    def managed(method: str, url: str, status: int, section: str = "5.1", **more: Any) -> Row:
        return Row(section, method, url, status, on=MANAGEMENT, **more)

    listed = [{"modelName": name, "status": "READY"} for name in ("doubled", "mirror", "obedient")]
    yield managed("GET", "/models", 200, json={"models": listed})
    yield managed("GET", "/models?limit=2", 200, json={"nextPageToken": "2", "models": listed[:2]})
    yield managed("GET", "/models?limit=2&next_page_token=2", 200, json={"models": listed[2:]})
    yield managed("GET", "/models?limit=0", 200, json={"models": listed})
    yield managed("GET", "/models?next_page_token=99", 200, json={"models": []})
    names = [{"workflowName": row["modelName"]} for row in listed]
    yield managed("GET", "/workflows", 200, json={"nextPageToken": "3", "workflows": names})
    yield managed("GET", "/workflows?limit=1", 200, json={"nextPageToken": "1", "workflows": names[:1]})
    for name in ("doubled", "mirror", "obedient"):
        for what in ("models", "workflows"):
            yield managed("GET", f"/{what}/{name}", 200, json=[{"workflowName": name}], section="5.2")
    for what in ("models", "workflows"):
        yield managed("PUT", f"/{what}/mirror?min_worker=1&max_worker=1", 200, json={"status": (
            'Workflow "mirror" worker scaled. New Worker configuration min workers:1 max workers:1')})  # fmt: skip
        yield managed("PUT", f"/{what}/mirror", 200, json={"status": (
            'Workflow "mirror" worker scaled. New Worker configuration min workers:-1 max workers:-1')})  # fmt: skip
        gone = ("ModelNotFoundException", "Model or workflow not found: nobody")
        yield managed("PUT", f"/{what}/nobody?min_worker=1", 404, error=gone)
        yield managed("DELETE", f"/{what}/nobody", 404, error=gone)
        yield managed(
            "GET", f"/{what}/nobody", 404, error=("ModelNotFoundException", "Workflow not found: nobody")
        )
        yield managed("GET", f"/{what}/mirror/v9", 404)
        for method in ("PUT", "DELETE", "PATCH"):
            yield managed(method, f"/{what}", 405, error=NO_METHOD)
        for method in ("POST", "PATCH"):
            yield managed(method, f"/{what}/mirror", 405, error=NO_METHOD)
        for word in ("x", "1.5", "99999999999"):
            yield managed("PUT", f"/{what}/mirror?min_worker={word}", 400)
    yield managed("POST", "/models", 400, error=("BadRequestException", "Parameter url is required."))
    either = ("BadRequestException", "Either parameter url or template is required.")
    yield managed("POST", "/workflows", 400, error=either)
    for name in (
        "batch_size",
        "job_queue_size",
        "max_batch_delay",
        "max_idle_time",
        "min_worker",
        "max_worker",
    ):
        number = ("NumberFormatException", 'For input string: "x"')
        yield managed("POST", f"/models?url=/m&{name}=x", 409, error=number, section="4.6")
    for name in ("limit", "next_page_token"):
        number = ("NumberFormatException", 'For input string: "y"')
        yield managed("GET", f"/models?{name}=y", 409, error=number, section="4.6")
    yield managed("POST", "/models?url=/nowhere/m", 404)
    for body in (b"", b"[1]", b"{", b'{"model_name": "x"}'):
        yield managed("POST", "/models", 400, send=body, fields={"Content-Type": "application/json"})
    for method in ("POST", "GET", "PUT"):
        yield managed(method, "/server/logging?level=info", 200, section="5.3", json={"status": "OK"})
    for url in ("/server", "/server/", "/server/nothing", "/predictions/mirror", "/invocations", "/x", "/"):
        yield managed("GET", url, 404, error=NO_ROUTE, section="5.3")


# -- 4.7: answers that are fetched later -------------------------------------------------------------------


def _paging() -> Iterator[Row]:
    url = "/predictions/obedient"
    yield Row("4.7", "POST", url, 200, b"x", {"x-synchronous": "false"}, body=b"")
    yield Row("4.7", "POST", url, 200, b"x", {"x-synchronous": "true"}, body=b"x")
    yield Row("4.7", "POST", "/predictions/nobody", 404, b"x", {"x-synchronous": "false"})
    for token in ("", "short", "0" * 36, "0" * 36 + "7", "0" * 36 + "x"):
        message = ("BadRequestException", f"Invalid x-starting-token: {token}")
        yield Row("4.7", "GET", url, 400, fields={"x-starting-token": token}, error=message)
