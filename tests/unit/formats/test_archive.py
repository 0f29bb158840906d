"""The extractor: what it unpacks and how, and that every hostile archive is refused, quickly and without a trace."""

import errno
import gzip
import io
import os
import resource
import shutil
import stat
import struct
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.properties import examples

from trivium.formats import archive
from trivium.formats.archive import Bounds, names, unpack
from trivium.types.errors import ConfigError

FILES = {"model.py": b"print(1)\n", "sub/deep/weights.bin": bytes(range(256)) * 2000, "empty": b""}
SMALL = Bounds(total_bytes=10_000, members=10, free_bytes=5_000)


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return buffer.getvalue()


def tarred(files: Mapping[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    return tar_of([(regular(name, data), data) for name, data in files.items()], form)


def regular(name: str, data: bytes = b"") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o4755
    return info


def special(name: str, kind: bytes, leads: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, leads
    return info


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as file:
        for info, data in members:
            file.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def placed(folder: Path, data: bytes, name: str = "a.mar") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if not path.is_dir()
    }


def refused(tmp_path: Path, data: bytes, bounds: Bounds = archive.BOUNDS) -> str:
    """The refusal's text. Nothing may be left of it."""
    path, scratch = placed(tmp_path, data), tmp_path / "scratch"
    with pytest.raises(ConfigError) as caught:
        unpack(path, scratch, bounds)
    assert list(scratch.iterdir()) == []
    assert all(finding.file == str(path) and finding.expected for finding in caught.value.findings)
    return str(caught.value)


# -- what is unpacked --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pack",
    [
        zipped,
        lambda files: zipped(files, zipfile.ZIP_STORED),
        tarred,
        lambda files: tarred(files, tarfile.GNU_FORMAT),
        lambda files: tarred(files, tarfile.USTAR_FORMAT),
        lambda files: gzip.compress(tarred(files)),
    ],
    ids=["deflated", "stored", "pax", "gnu", "ustar", "tar.gz"],
)
def test_unpacks_privately(tmp_path: Path, pack: Callable[[Mapping[str, bytes]], bytes]) -> None:
    path = placed(tmp_path, pack(FILES))
    folder = unpack(path, tmp_path / "scratch")
    assert contents(folder) == FILES
    assert names(path) == tuple(FILES)
    assert folder.parent == tmp_path / "scratch"
    for entry in (folder, *folder.rglob("*")):
        assert stat.S_IMODE(entry.stat().st_mode) == (0o700 if entry.is_dir() else 0o600)


def test_long_names_folders_and_dots(tmp_path: Path) -> None:
    long = "x" * 200 + "/" + "y" * 200
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        members = [(special("./", tarfile.DIRTYPE), b""), (special("./f", tarfile.DIRTYPE), b"")]
        data = tar_of([*members, (regular("./f/ä"), b""), (regular(long, b"1"), b"1")], form)
        assert contents(unpack(placed(tmp_path, data, f"{form}.tar"), tmp_path)) == {"f/ä": b"", long: b"1"}
    folders = unpack(placed(tmp_path, zipped({"a/": b"", "a/b": b"2"}), "z.zip"), tmp_path)
    assert contents(folders) == {"a/b": b"2"}


def test_one_folder_per_file(tmp_path: Path) -> None:
    path, scratch = placed(tmp_path, zipped(FILES)), tmp_path / "scratch"
    first = unpack(path, scratch)
    (first / "mark").touch()
    assert unpack(path, scratch) == first
    assert (first / "mark").exists()
    link = tmp_path / "link.mar"
    link.symlink_to(path)
    assert unpack(link, scratch) == first
    path.write_bytes(zipped({"other": b""}))
    assert contents(unpack(path, scratch)) == {"other": b""}
    assert names(path) == ("other",)


def test_what_a_cleaner_has_emptied_is_unpacked_anew(tmp_path: Path) -> None:
    for form, data in (("zip", zipped(FILES)), ("tar.gz", gzip.compress(tarred(FILES)))):
        path, scratch = placed(tmp_path, data, f"a.{form}"), tmp_path / "scratch"
        folder = unpack(path, scratch)
        (folder / "sub" / "deep" / "weights.bin").unlink()
        assert contents(unpack(path, scratch)) == FILES
        shutil.rmtree(scratch)
        assert contents(unpack(path, scratch)) == FILES


def test_threads_that_race_share_a_folder(tmp_path: Path) -> None:
    path, scratch = placed(tmp_path, zipped({str(i): b"x" * 100 for i in range(200)})), tmp_path / "scratch"
    found: list[Path] = []
    start = threading.Barrier(8)

    def race() -> None:
        start.wait()
        found.append(unpack(path, scratch))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert list(scratch.iterdir()) == [found[0]]
    assert len(contents(found[0])) == 200


# -- what is refused ---------------------------------------------------------------------------------------

BAD_NAMES = {
    "/etc/passwd": "absolute",
    "C:/x": "absolute",
    "c:x": "absolute",
    "../x": "leaves its folder",
    "a/../../x": "leaves its folder",
    "a/..": "leaves its folder",
    "a\\..\\x": "backslash",
    "x" * 256: "cannot hold",
    "ä" * 128: "cannot hold",
    "a/" * 64 + "x": "cannot hold",
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_no_file_may_have(tmp_path: Path, name: str) -> None:
    for data in (zipped({"good": b"1", name: b"1"}), tarred({"good": b"1", name: b"1"})):
        assert BAD_NAMES[name] in refused(tmp_path, data)
    assert not (tmp_path.parent / "x").exists()


def test_nul_in_names(tmp_path: Path) -> None:
    data = zipped({"abcNdef": b"1"}).replace(b"abcNdef", b"abc\0def")
    assert "NUL" in refused(tmp_path, data)
    pax = tarred({"aä" + "N" * 120: b"1"}).replace(b"N" * 120, b"N" * 119 + b"\0")
    assert "NUL" in refused(tmp_path, pax)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (b"V", "a member of a kind of its own"),
    ],
)
def test_members_of_a_tar_that_are_no_files(tmp_path: Path, kind: bytes, words: str) -> None:
    text = refused(tmp_path, tar_of([(regular("good"), b""), (special("bad", kind, "good"), b"")]))
    assert f"bad: {words}" in text


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_members_of_a_zip_that_are_no_files(tmp_path: Path, kind: int) -> None:
    info = zipfile.ZipInfo("bad")
    info.external_attr = (kind | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(info, b"/etc/passwd")
    assert "expected plain files and folders" in refused(tmp_path, buffer.getvalue())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_clash(tmp_path: Path) -> None:
    for pairs in (("a", "a"), ("a", "./a"), ("a", "a/b"), ("a/b", "a"), ("a//b", "a/b")):
        data = tar_of([(regular(name), b"") for name in pairs])
        assert "of the same name came before" in refused(tmp_path, data)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            for name in pairs:
                file.writestr(name, b"")
        assert "of the same name came before" in refused(tmp_path, buffer.getvalue())


def test_every_reason_is_named(tmp_path: Path) -> None:
    path = placed(tmp_path, zipped({"../a": b"", "/b": b"", "fine": b""}))
    with pytest.raises(ConfigError) as caught:
        unpack(path, tmp_path / "scratch")
    assert [finding.key for finding in caught.value.findings] == ["../a", "/b"]


def test_encrypted_and_odd_methods(tmp_path: Path) -> None:
    data = bytearray(zipped({"a": b"secret"}))
    for signature, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(signature) + place] |= 1
    assert "encrypted" in refused(tmp_path, bytes(data))
    assert "method 14" in refused(tmp_path, zipped({"a": b"x"}, zipfile.ZIP_LZMA))
    assert "method 12" in refused(tmp_path, zipped({"a": b"x"}, zipfile.ZIP_BZIP2))


def test_bombs_are_measured_not_believed(tmp_path: Path) -> None:
    bomb = b"\0" * 30_000
    for data in (zipped({"a": bomb}), gzip.compress(tarred({"a": bomb})), tarred({"a": bomb})):
        assert "holds more than" in refused(tmp_path, data, Bounds(total_bytes=20_000))
    by_ratio = Bounds(ratio=20, free_bytes=1000)
    for data in (zipped({"a": bomb}), gzip.compress(tarred({"a": bomb}))):
        assert "holds more than" in refused(tmp_path, data, by_ratio)
    lying = bytearray(zipped({"a": bomb}))  # says that it holds one byte
    struct.pack_into("<I", lying, lying.index(b"PK\1\2") + 24, 1)
    path = placed(tmp_path, bytes(lying), "lying.mar")
    try:
        folder = unpack(path, tmp_path / "lies", Bounds(total_bytes=20_000))
    except ConfigError:
        assert list((tmp_path / "lies").iterdir()) == []
    else:
        assert len((folder / "a").read_bytes()) <= 1


def test_too_many_members(tmp_path: Path) -> None:
    many = {str(i): b"" for i in range(11)}
    nested = {f"{i}/a/b/c": b"" for i in range(4)}  # 4 files in 12 folders
    for files in (many, nested):
        for data in (zipped(files), tarred(files), gzip.compress(tarred(files))):
            assert "too many members" in refused(tmp_path, data, SMALL)


def test_a_million_members_are_refused_at_once(tmp_path: Path) -> None:
    block = tar_of([(regular("x"), b"")])[:512]
    head, tail = zipped({"x": b""}), b""
    entry = head[head.index(b"PK\1\2") : head.index(b"PK\5\6")]
    tail = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry) * 10**6, head.index(b"PK\1\2"), 0)
    packed = gzip.compress(block * 1000, 1) * 1000
    path = placed(tmp_path, packed, "names.tgz")
    lying_zip = head[: head.index(b"PK\1\2")] + entry * 10**6 + tail
    began = time.process_time()
    assert "of the same name" in refused(tmp_path, packed)
    assert "too many members" in refused(tmp_path, lying_zip)
    assert len(names(path)) == archive.BOUNDS.members + 1
    assert time.process_time() - began < 10  # seconds of computing; to read all of it takes minutes


def test_headers_are_bounded(tmp_path: Path) -> None:
    huge = special("x", b"L")
    huge.size = 2**40
    data = huge.tobuf(tarfile.GNU_FORMAT) + b"y" * 2048
    assert "headers in front of a member" in refused(tmp_path, data)
    small = special("x", b"L")
    small.size = 512
    chain = (small.tobuf(tarfile.GNU_FORMAT) + b"y" * 512) * 17
    assert "headers in front of a member" in refused(tmp_path, chain)
    shared = tarred({"a": b""})
    info = tarfile.TarInfo.create_pax_global_header({"path": "elsewhere"})
    assert "all members the same name" in refused(tmp_path, info + shared)


def test_damage(tmp_path: Path) -> None:
    whole = {"a": os.urandom(5000), "b": b"2"}
    tar, pressed, zip_ = tarred(whole), gzip.compress(tarred(whole)), zipped(whole)
    broken_header = bytearray(tar)
    broken_header[512 + 5120 + 3] ^= 1  # the second member's name
    broken_sum = bytearray(pressed)
    broken_sum[-5] ^= 1
    broken_data = bytearray(zip_)
    broken_data[60] ^= 1
    cases = [
        tar[:3000],
        tar[:512],
        pressed[:-9],
        pressed[:2000],
        zip_[:-30],
        zip_[:20],
        b"PK\3\4",
        b"\x1f\x8b",
    ]
    cases += [
        tar + b"x" * 2**21,
        pressed + b"x" * 100,
        bytes(broken_header),
        bytes(broken_sum),
        bytes(broken_data),
    ]
    cases += [b"", b"hello", b"x" * 1000, b"\0" * 10240]
    for data in cases:
        refused(tmp_path, data)


def test_disk_full_and_no_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def full(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_EXCL and str(path).endswith("model.py"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(archive.os, "open", full)
    assert "No space left on device" in refused(tmp_path, zipped(FILES))
    with pytest.raises(ConfigError, match="No such file"):
        unpack(tmp_path / "none.mar", tmp_path / "scratch")
    with pytest.raises(ConfigError, match="directory"):
        unpack(tmp_path, tmp_path / "scratch")
    with pytest.raises(ConfigError, match=r"Not a directory|File exists"):
        unpack(tmp_path / "a.mar", tmp_path / "a.mar")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_write_that_fails_in_the_middle_of_a_file(
    tmp_path: Path, pack: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    """The kernel refuses what comes behind the first 200 kB of a file, as a full disk does."""
    data = pack(FILES)
    placed(tmp_path, data)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        assert len(FILES["sub/deep/weights.bin"]) > 200_000
        with pytest.raises(ConfigError) as caught:
            unpack(tmp_path / "a.mar", tmp_path / "scratch")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert "File too large" in str(caught.value)
    assert "serve the folder itself" in str(caught.value)
    assert contents(unpack(tmp_path / "a.mar", tmp_path / "scratch")) == FILES


def test_names_never_raises(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", tmp_path / "nul\0", placed(tmp_path, b"PK\3\4 not a zip")):
        assert names(path) == ()
    half = placed(tmp_path, tarred({"a": b"1", "b": b"2"})[:1600], "half.tar")
    assert names(half) == ("a", "b")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert names(pipe) == ()


# -- against the library's own reader ----------------------------------------------------------------------

NAMES = st.text(
    st.characters(exclude_characters="/\\\0:", exclude_categories=["Cs"]), min_size=1, max_size=60
)
TREES = st.dictionaries(
    NAMES.filter(lambda n: n not in (".", "..") and len(n.encode()) < 200), st.binary(), max_size=5
)


@settings(max_examples=examples(60))
@given(TREES, st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))
def test_reads_what_tarfile_writes(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], form: int
) -> None:
    folder = tmp_path_factory.mktemp("tar")
    if files:
        assert contents(unpack(placed(folder, tarred(files, form)), folder / "scratch")) == files


@settings(max_examples=examples(150))
@given(
    st.sampled_from(["zip", "tar", "gz"]),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=8),
)
def test_hostile_bytes_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, kind: str, flips: list[tuple[int, int]]
) -> None:
    files = {"a": b"hello" * 50, "b/c": b"1"}
    made = {"zip": zipped, "tar": tarred, "gz": lambda f: gzip.compress(tarred(f), mtime=0)}[kind](files)
    data = bytearray(made)
    for place, value in flips:
        data[place % len(data)] = value
    folder = tmp_path_factory.mktemp("hostile")
    path = placed(folder, bytes(data))
    names(path)
    try:
        unpacked = unpack(path, folder / "scratch", SMALL)
    except ConfigError:
        assert list((folder / "scratch").iterdir()) == []
    else:
        assert all(not entry.is_symlink() for entry in unpacked.rglob("*"))
    assert sorted(entry.name for entry in folder.iterdir()) == ["a.mar", "scratch"]


def test_an_archive_that_hangs_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that has been unpacked its names are read again."""
    hangs, other = placed(tmp_path, zipped(FILES), "hangs.mar"), placed(tmp_path, zipped(FILES), "other.mar")
    folders = [unpack(path, tmp_path / "scratch") for path in (hangs, other)]
    begun, go_on, waited, read = threading.Event(), threading.Event(), [], archive.names

    def slowly(path: Path) -> tuple[str, ...]:
        if path == hangs:
            begun.set()
            waited.append(go_on.wait(10))
        return read(path)

    monkeypatch.setattr(archive, "names", slowly)
    thread = threading.Thread(target=unpack, args=(hangs, tmp_path / "scratch"))
    thread.start()
    begun.wait(60)
    assert unpack(other, tmp_path / "scratch") == folders[1]
    go_on.set()
    thread.join()
    assert waited == [True]
