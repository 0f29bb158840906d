"""What the composition root finds out about the machine."""

from trivium.app import count_gpus


def test_gpus_are_counted_by_their_device_files(tmp_path):
    assert count_gpus(tmp_path) == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert count_gpus(tmp_path) == 2
