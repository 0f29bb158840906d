"""Converted weights are kept within a bound, whole or not at all, in a folder that may be of no use."""

import json
import os
import stat

import pytest

from trivium.engines.hf.weights_cache import WEIGHTS, StoredTensor, WeightsCache, cache_folder, cache_key


def put(cache, key, size=64):
    """Keep one tensor of so many bytes."""
    tensors = [StoredTensor("a", "F32", (size // 4,), size)]
    return cache.put(key, tensors, iter([memoryview(bytes(size))]))


def test_what_is_kept_is_found_again_and_nobody_else_can_read_it(tmp_path):
    cache = WeightsCache(tmp_path / "weights", 10_000)
    assert cache.get("k") is None
    folder = put(cache, "k")
    assert cache.get("k") == folder
    data = (folder / WEIGHTS).read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert (8 + length) % 64 == 0
    assert json.loads(data[8 : 8 + length])["a"] == {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}
    assert len(data) == 8 + length + 64
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "weights", folder, folder / WEIGHTS)]
    assert modes == [0o700, 0o700, 0o600]
    assert put(cache, "k") == folder
    assert os.listdir(tmp_path / "weights") == ["k"]
    cache.drop("k")
    assert cache.get("k") is None


def test_what_was_used_least_recently_goes(tmp_path):
    size = 4096
    cache = WeightsCache(tmp_path / "weights", 3 * size)
    for at, key in enumerate("ab"):
        os.utime(put(cache, key, size), (at, at))
    cache.get("a")
    put(cache, "c", size)
    assert sorted(os.listdir(tmp_path / "weights")) == ["a", "c"]


def test_what_is_larger_than_the_bound_is_not_kept_and_throws_nothing_out(tmp_path):
    cache = WeightsCache(tmp_path / "weights", 3000)
    put(cache, "a")
    with pytest.raises(OSError, match="the bound is 3000"):
        put(cache, "b", 4096)
    assert os.listdir(tmp_path / "weights") == ["a"]


@pytest.mark.parametrize("contents", [[], [b"x" * 63], [b"x" * 65]])
def test_what_is_not_whole_never_gets_a_name(tmp_path, contents):
    cache = WeightsCache(tmp_path / "weights", 3000)
    with pytest.raises(ValueError, match=r"bytes, not 64|shorter"):
        cache.put("k", [StoredTensor("a", "F32", (16,), 64)], map(memoryview, contents))
    assert cache.get("k") is None
    assert os.listdir(tmp_path / "weights") == []


def test_a_folder_that_cannot_be_written_to_is_an_error_of_the_system(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        put(WeightsCache(tmp_path / "file" / "weights", 3000), "k")
    assert WeightsCache(tmp_path / "file" / "weights", 3000).get("k") is None


def test_weights_that_somebody_else_may_have_put_there_are_not_read(tmp_path):
    cache = WeightsCache(tmp_path / "weights", 3000)
    put(cache, "k")
    (tmp_path / "weights").chmod(0o777)
    assert cache.get("k") is None
    with pytest.raises(OSError, match="nobody else can write"):
        put(cache, "l")
    (tmp_path / "weights").chmod(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "weights")
    assert WeightsCache(tmp_path / "link", 3000).get("k") is None


def test_what_a_crash_left_is_removed_later(tmp_path):
    cache = WeightsCache(tmp_path / "weights", 3000)
    put(cache, "k")
    for name, at in ((".new-1-old", 0), (".new-2-young", None)):
        (tmp_path / "weights" / name).mkdir()
        if at is not None:
            os.utime(tmp_path / "weights" / name, (at, at))
    put(cache, "l")
    assert sorted(os.listdir(tmp_path / "weights")) == [".new-2-young", "k", "l"]


def test_a_key_tells_files_and_ways_apart(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"a")
    first = cache_key([path], "fp32")
    assert first == cache_key([path], "fp32")
    assert first != cache_key([path], "bf16")
    path.write_bytes(b"ab")
    assert first != cache_key([path], "fp32")


def test_the_folder_is_the_users_cache():
    assert str(cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"})) == "/c/trivium/weights"
    assert str(cache_folder({"XDG_CACHE_HOME": "no", "HOME": "/h"})) == "/h/.cache/trivium/weights"
    with pytest.raises(OSError):
        put(WeightsCache(cache_folder({}), 3000), "k")
