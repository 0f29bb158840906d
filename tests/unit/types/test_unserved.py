"""Libraries whose files are refused: each is named in every format, and nothing that is served is among them."""

import pytest
from tests.harness import djl_folders, triton_folders

from trivium.formats.bare import BY_CONTENT, ENGINES
from trivium.types.unserved import UNSERVED, unserved_file

NAMES = [(name, row) for row in UNSERVED for name in (row.library, *row.names)]


@pytest.mark.parametrize(("name", "row"), NAMES, ids=[name for name, _ in NAMES])
def test_each_name_is_refused_with_the_way_out(tmp_path, name, row):
    (fault,) = djl_folders.faults(djl_folders.make(tmp_path, "djl", f"engine={name.upper()}"))
    assert (fault.key, fault.found, fault.hint) == ("engine", f"engine={name.upper()}", row.way_out)
    lower = name if name in row.names else name.lower()
    (fault,) = triton_folders.faults(triton_folders.make(tmp_path, "m", f'backend: "{lower}"', "1/model.x"))
    assert fault.key == "backend"
    assert "which is not supported in this version" in fault.found
    assert "ONNX" in fault.hint if row.library == "TensorRT" else fault.hint == row.way_out


def test_no_file_that_is_served_is_refused():
    assert not any(unserved_file(suffix) for suffix in (*ENGINES, *BY_CONTENT, ".bin", ""))
