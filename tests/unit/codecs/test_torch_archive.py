"""Extra files of PyTorch's archives: what there are, their texts, and what is no such text."""

import zipfile

import pytest

from trivium.codecs import torch_archive
from trivium.codecs.torch_archive import extra_texts, names_of

MEMBERS = {
    "net/extra/config.txt": b'{"stride": 32}',
    "net/extra/a/b.txt": "é".encode(),
    "net/data.pkl": b"no",
}


@pytest.fixture
def archive(tmp_path):
    def written(**more):
        with zipfile.ZipFile(tmp_path / "net.pt", "w") as file:
            for name, data in (MEMBERS | {f"net/extra/{key}": each for key, each in more.items()}).items():
                file.writestr(name, data)
        return tmp_path / "net.pt"

    return written


@pytest.mark.parametrize(
    ("text", "names"), [("", ()), ("a.txt", ("a.txt",)), (" a , b,,a", ("a", "b")), ("a/b.txt", ("a/b.txt",))]
)
def test_names_in_a_text(text, names):
    assert names_of(text) == names


def test_they_are_read_by_name(archive):
    asked = ("a/b.txt", "config.txt", "data.pkl", "nowhere")
    assert extra_texts(archive(), asked) == {
        "a/b.txt": "é",
        "config.txt": '{"stride": 32}',
        "data.pkl": "",
        "nowhere": "",
    }


def test_what_is_no_text_or_too_large_is_refused_and_what_nobody_names_is_not_read(archive, monkeypatch):
    path = archive(binary=b"a\xff", large=b"0" * 100)
    monkeypatch.setattr(torch_archive, "MOST_BYTES", 99)
    assert extra_texts(path, ["config.txt"])["config.txt"]
    with pytest.raises(ValueError, match=r"the extra file binary is no text in UTF-8 \(byte 1\)"):
        extra_texts(path, ["binary"])
    with pytest.raises(ValueError, match="more than 99 bytes"):
        extra_texts(path, ["large"])
    monkeypatch.setattr(torch_archive, "MOST_BYTES", 15)
    with pytest.raises(ValueError, match="more than 15 bytes"):
        extra_texts(path, ["config.txt", "a/b.txt"])


def test_no_archive(tmp_path):
    (tmp_path / "net.pt").write_bytes(b"\x80\x02")
    with pytest.raises(zipfile.BadZipFile):
        extra_texts(tmp_path / "net.pt", ["a"])
