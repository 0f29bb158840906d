"""Archives of models: zip, mar, tar and tar.gz, into a folder or refused."""

import atexit
import gzip
import io
import random
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.fuzz.target import Change, Target

from trivium.formats.archive import Bounds, names, unpack
from trivium.types.errors import ServeError

FILES = {
    "MAR-INF/MANIFEST.json": b"{}",
    "model.py": b"print(1)\n",
    "sub/deep/w.bin": bytes(range(256)) * 4,
    "empty": b"",
}
SMALL = Bounds(total_bytes=2**20, members=40, free_bytes=2**18)
BLOCK = 512
NAMES = (
    "../x", "/x", "a/../b", "a\\b", "C:x", "", ".", "./", "a//b", "x" * 300, "/".join("d" * 70), "a\0b", "ä",
    "\udcff", "model.py", "sub",
    "sub/deep/w.bin/x", "empty/",
)  # fmt: skip


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in files.items():
            file.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def tarred(files: Mapping[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as file:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return buffer.getvalue().rstrip(b"\0") + bytes(2 * BLOCK)


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


LONG = {"x" * 150 + "/" + "y" * 150: b"1", "ä": b"2"}
ZIPS = (zipped(FILES), zipped(FILES, zipfile.ZIP_STORED), zipped({"a/": b"", "a/b": b"2"}))
TARS = (
    tarred(FILES),
    tarred(FILES, tarfile.GNU_FORMAT),
    tarred(FILES, tarfile.USTAR_FORMAT),
    tarred(LONG),
    tarred(LONG, tarfile.GNU_FORMAT),
)
TOKENS = (
    b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"\x1f\x8b\x08", b"ustar\x0000", b"ustar  \0",
    b"\x80" + bytes(11), b"../", b"/",
    b"\0" * 512, b"30 path=../../../../etc/passwd\n", b"17 size=99999999\n", b"99999999 a=b\n", b"x", b"g", b"L",
    b"K", b"S", b"2",
    b"\xff" * 8,
)  # fmt: skip


@cache
def scratch() -> Path:
    """A folder of this process."""
    folder = tempfile.TemporaryDirectory(prefix="fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def read(data: bytes, chance: random.Random) -> None:
    """Unpack it, and see that nothing has got out of its folder, or is left of one that was refused."""
    place, into = scratch() / "a.mar", scratch() / "into"
    place.write_bytes(data)
    names(place)
    try:
        folder = unpack(place, into, SMALL)
        assert into in folder.parents
        size = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
        assert size <= SMALL.total_bytes
        shutil.rmtree(folder)
    except ServeError:
        assert not list(into.iterdir()), "something is left of an archive that was refused"
        raise
    assert {path.name for path in scratch().iterdir()} == {"a.mar", "into"}


def rebuilt_zip(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """Whole, with a name, the data or the attributes of a member changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(entry)) as old, zipfile.ZipFile(buffer, "w") as new:
        for member in old.infolist():
            name = chance.choice(NAMES[:-2]) if chance.random() < 0.2 else member.filename
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            info.external_attr = chance.choice((0, 0, 0o120777, 0o040755, 0o010644, 0o100644)) << 16
            info.compress_type = chance.choice((0, 8, 8, 12))
            data = old.read(member)
            new.writestr(info, bytes(2**19) if chance.random() < 0.02 else data)
    return buffer.getvalue() if chance.random() < 0.5 else change(buffer.getvalue())


def with_checksum(block: bytes) -> bytes:
    total = sum(block[:148] + b" " * 8 + block[156:])
    return block[:148] + b"%06o\0 " % total + block[156:]


def rebuilt_tar(entry: bytes, change: Change, chance: random.Random) -> bytes:
    """A header is changed, and its sum is right again."""
    blocks = [entry[at : at + BLOCK] for at in range(0, len(entry), BLOCK)]
    heads = [number for number, block in enumerate(blocks) if block[257:262] == b"ustar"]
    for number in chance.sample(heads, min(len(heads), chance.choice((1, 2)))):
        block = blocks[number]
        at, size = chance.choice(((0, 100), (124, 12), (156, 1), (257, 8), (345, 155), (0, 512)))
        field = change(block[at : at + size])[:size].ljust(size, b"\0")
        blocks[number] = with_checksum((block[:at] + field + block[at + size :])[:BLOCK].ljust(BLOCK, b"\0"))
    return b"".join(blocks)


def rebuilt_gzip(entry: bytes, change: Change, chance: random.Random) -> bytes:
    inner = gzip.decompress(entry)
    return gzipped(rebuilt_tar(inner, change, chance) if chance.random() < 0.7 else change(inner))


TARGETS = (
    Target("zip", ZIPS, read, tokens=TOKENS, rebuild=rebuilt_zip),
    Target("tar", TARS, read, tokens=TOKENS, rebuild=rebuilt_tar),
    Target("tar_gz", tuple(map(gzipped, TARS)), read, tokens=TOKENS, rebuild=rebuilt_gzip),
)
