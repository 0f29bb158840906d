"""Archives that would break out, places that lead elsewhere, bodies without an end: registered by name and by URL.
Each is refused with a reason, and leaves nothing; neighbours are answered.
"""

import io
import json
import os
import tarfile
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness.server_process import until
from tests.harness.torchserve_management import Managed, archive, managed
from tests.harness.web import Web, body, dripping, endless, redirect, status, web

MANIFEST = json.dumps(
    {"runtime": "python", "model": {"modelName": "evil", "modelVersion": "1.0", "handler": "handler.py"}}
)
GOOD = "def handle(data, context):\n    return data and [b'evil'] * len(data)\n"
TEMPORARY = "temporary"
LIMIT = 3_000_000
"""Bytes that are fetched for one model at most."""


def zipped(*members: tuple[str, bytes], mode: int = 0o100644, packing: int = zipfile.ZIP_STORED) -> bytes:
    """A zip with a good model in front of these members; `mode` is that of the last."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", packing) as packed:
        packed.writestr("MAR-INF/MANIFEST.json", MANIFEST)
        packed.writestr("handler.py", GOOD)
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = packing
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # names that are there twice
                packed.writestr(info, data)
    return made.getvalue()


def tarred(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"") -> bytes:
    """A tar with a good model in front of one more member."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as packed:
        for each, text in (
            ("evil/MAR-INF/MANIFEST.json", MANIFEST.encode()),
            ("evil/handler.py", GOOD.encode()),
        ):
            info = tarfile.TarInfo(each)
            info.size = len(text)
            packed.addfile(info, io.BytesIO(text))
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, link, len(data)
        packed.addfile(info, io.BytesIO(data))
    return made.getvalue()


def encrypted() -> bytes:
    made = bytearray(zipped(("x", b"x")))
    for mark, place in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        made[made.rfind(mark) + place] |= 1
    return bytes(made)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "upwards.mar": lambda: zipped(("../../escaped.py", b"")),
    "upwards_within.mar": lambda: zipped(("a/../../escaped.py", b"")),
    "backwards.mar": lambda: zipped(("..\\..\\escaped.py", b"")),
    "absolute.mar": lambda: zipped(("/tmp/escaped-by-trivium-test.py", b"")),
    "neighbour.mar": lambda: zipped(("../store2/escaped.py", b"")),
    "link.mar": lambda: zipped(("out", b"/etc"), mode=0o120777),
    "device.mar": lambda: zipped(("dev", b""), mode=0o020666),
    "twice.mar": lambda: zipped(("handler.py", b"raise SystemExit"), ("other.py", b"")),
    "encrypted.mar": encrypted,
    "bomb.mar": lambda: zipped(("zeros", bytes(50_000_000)), packing=zipfile.ZIP_DEFLATED),
    "many.mar": lambda: zipped(*((f"f{number}", b"") for number in range(10_001))),
    "cut.mar": lambda: zipped(("x", b"x" * 1000))[:-500],
    "nothing.mar": lambda: b"",
    "no_archive.mar": lambda: b"#!/bin/sh\nexit 1\n",
    "upwards.tar.gz": lambda: tarred("evil/../../escaped.py"),
    "absolute.tar.gz": lambda: tarred("/tmp/escaped-by-trivium-test.py"),
    "symbolic.tar.gz": lambda: tarred("evil/out", tarfile.SYMTYPE, "/etc"),
    "hard.tar.gz": lambda: tarred("evil/out", tarfile.LNKTYPE, "/etc/passwd"),
    "pipe.tar.gz": lambda: tarred("evil/pipe", tarfile.FIFOTYPE),
    "device.tar.gz": lambda: tarred("evil/null", tarfile.CHRTYPE),
    "bomb.tar.gz": lambda: tarred("evil/zeros", data=bytes(50_000_000)),
    "cut.tar.gz": lambda: tarred("evil/x", data=os.urandom(5000))[:-2000],
}
"""File -> an archive that must not be served."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Web]:
    stop = threading.Event()
    answers = {f"/{name}": body(make()) for name, make in HOSTILE.items()}
    answers |= {
        "/endless.mar": endless,
        "/dripping.mar": dripping(stop),
        "/dripping_head.mar": dripping(stop, head=True),
        "/announced.mar": body(b"x", LIMIT + 1),
        "/long.mar": body(bytes(LIMIT + 1)),
        "/good.mar": body(zipped(("x", b"x"))),
        "/loopback.mar": redirect("http://127.0.0.1:1/m.mar"),
        "/loopback6.mar": redirect("http://[::1]:1/m.mar"),
        "/localhost.mar": redirect("http://localhost:1/m.mar"),
        "/link_local.mar": redirect("http://169.254.169.254/latest/meta-data/m.mar"),
        "/link_local6.mar": redirect("http://[fe80::1]/m.mar"),
        "/as_number.mar": redirect("http://2852039166/m.mar"),
        "/as_hex.mar": redirect("http://0xA9FEA9FE/m.mar"),
        "/mapped.mar": redirect("http://[::ffff:169.254.169.254]/m.mar"),
        "/file.mar": redirect("file:///etc/passwd"),
        "/elsewhere.mar": redirect("//example.com/m.mar"),
        "/with_user.mar": redirect("http://127.0.0.1@169.254.169.254/m.mar"),
        "/circle.mar": redirect("/circle.mar"),
        "/nowhere.mar": status(302),
    }
    with web(answers) as site:
        yield site
        stop.set()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    store = root / "store"
    archive(store, "echo")
    for name, make in HOSTILE.items():
        (store / name).write_bytes(make())
    archive(root / "store2", "outside")
    (store / "leads_out.mar").symlink_to(root / "store2" / "outside.mar")
    (store / "leads_out").symlink_to(root / "store2")
    (store / "leads_within.mar").symlink_to(store / "echo.mar")
    (root / TEMPORARY).mkdir()
    return root


@pytest.fixture(scope="module")
def server(place: Path, elsewhere: Web) -> Iterator[Managed]:
    site = elsewhere.url.replace(".", r"\.")
    words = ("--torchserve-allowed-urls", f"{site}/.*", "--fetch-from", elsewhere.url)
    words += ("--fetch-bytes", str(LIMIT), "--fetch-seconds", "3")
    variables = {"TMPDIR": str(place / TEMPORARY)}
    with managed(
        place / "log", place / "store", place / "store" / "echo.mar", *words, variables=variables
    ) as serving:
        until(lambda: serving.predict("echo")[0] == 200, serving.process.said)
        yield serving


def refused(server: Managed, url: str, place: Path) -> str:
    """Register what is there; it must be refused, in the log with a reason, and leave nothing. Returns what is said."""
    before = files(place)
    logged = len(server.process.said())
    answer = server.manage("POST", "/models", params={"url": url, "initial_workers": 1})
    assert answer.status_code in (400, 404), (url, answer.text)
    assert answer.json()["code"] == answer.status_code
    assert server.names() == ["echo"], url
    assert server.predict("echo") == (200, "1.0:x")
    assert server.infer("GET", "/ping").json() == {"status": "Healthy"}
    until(lambda: files(place) == before, lambda: str(files(place) ^ before))
    told = f"is answered with {answer.status_code}: "
    until(lambda: told in server.process.said()[logged:], lambda: server.process.said()[logged:])
    assert not Path("/tmp/escaped-by-trivium-test.py").exists()
    return str(answer.json()["message"])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_by_name_and_by_url(
    server: Managed, place: Path, elsewhere: Web, name: str
) -> None:
    for url in (name, f"{elsewhere.url}/{name}"):
        assert refused(server, url, place)


def files(place: Path) -> set[str]:
    """All that lies there: in the store, beside it, and in the folder for temporary files."""
    return {str(path.relative_to(place)) for path in place.rglob("*")}


@pytest.mark.parametrize(
    "path",
    [
        "endless",
        "dripping",
        "dripping_head",
        "announced",
        "long",
        "loopback",
        "loopback6",
        "localhost",
        "link_local",
        "link_local6",
        "as_number",
        "as_hex",
        "mapped",
        "file",
        "elsewhere",
        "with_user",
        "circle",
        "nowhere",
        "absent",
    ],
)
def test_what_a_url_leads_to_is_bounded_and_judged_again(
    server: Managed, place: Path, elsewhere: Web, path: str
) -> None:
    assert refused(server, f"{elsewhere.url}/{path}.mar", place)


@pytest.mark.parametrize(
    "url",
    [
        "{site}/../good.mar",
        "{site}/a/%2e%2e/good.mar",
        "{site}/%2e%2e%2fgood.mar",
        "{site}/%252e%252e/good.mar",
        "{site}/..%5cgood.mar",
        "http://127.0.0.1@{host}/good.mar",
        "http://user:word@{host}/good.mar",
        "{site}.example.com/good.mar",
        "{site}@example.com/good.mar",
        "{site}\n/good.mar",
        "{site}#@example.com/good.mar",
        " {site}x/good.mar",
        "http:/{host}/good.mar",
        "http:///{host}/good.mar",
        "//{host}/good.mar",
        "gopher://{host}/good.mar",
        "file:///{store}/echo.mar",
        "file://localhost{store}/echo.mar",
        "../store2/outside.mar",
        "{store}2/outside.mar",
        "./../store/../store2/outside.mar",
        "\u2024\u2024/store2/outside.mar",
        "..\\store2\\outside.mar",
        "leads_out.mar",
        "leads_out",
        "{store}/leads_out/outside.mar",
    ],
)
def test_a_name_or_url_in_disguise_opens_nothing(
    server: Managed, place: Path, elsewhere: Web, url: str
) -> None:
    host = elsewhere.url.removeprefix("http://")
    asked = url.format(site=elsewhere.url, host=host, store=place / "store")
    assert refused(server, asked, place)


def test_a_link_that_stays_in_the_store_is_a_model_of_it(server: Managed) -> None:
    asked = "/models?url=leads_within.mar&model_name=linked&initial_workers=1"
    assert server.status("POST", asked)[0] == 200
    assert server.predict("linked") == (200, "1.0:x")
    assert server.status("DELETE", "/models/linked")[0] == 200


def test_what_is_allowed_is_still_fetched(server: Managed, elsewhere: Web) -> None:
    asked = f"/models?url={elsewhere.url}/good.mar&initial_workers=1"
    assert server.status("POST", asked)[0] == 200
    assert server.predict("evil") == (200, "evil")
    assert server.status("DELETE", "/models/evil")[0] == 200


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system ['touch {mark}']",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!javax.script.ScriptEngineManager [!!java.net.URL ['file://{mark}']]",
        "&a [*a, *a]",
        "!custom x",
    ],
)
def test_yaml_of_a_model_makes_no_objects(server: Managed, place: Path, tag: str) -> None:
    mark = place / "made"
    text = f"minWorkers: 1\nmaxWorkers: 1\nhandler:\n  made: {tag.format(mark=mark)}\n"
    path = archive(place / "store", "tagged", config=text)
    try:
        answer = server.manage("POST", "/models?url=tagged.mar&initial_workers=1")
        assert answer.status_code == 400, answer.text
        assert answer.json()["message"]
        assert server.names() == ["echo"]
        assert not mark.exists()
        assert server.predict("echo") == (200, "1.0:x")
    finally:
        path.unlink()
