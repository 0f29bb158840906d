"""The flags of the commands that serve."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from trivium.cli.serve import command


@pytest.mark.parametrize("value", ["own", "grpcio"])
def test_a_flag_that_was_removed_says_so(tmp_path: Path, value: str) -> None:
    done = CliRunner().invoke(command, [str(tmp_path), "--grpc-layer", value])
    assert done.exit_code == 1
    assert "grpc_layer: was removed: gRPC is served by Trivium's own HTTP/2 alone. Drop it." in done.output
    assert "--grpc-layer" not in CliRunner().invoke(command, ["--help"]).output
