"""The log settings of the command `tritonserver` while it runs: what is written then, and in which form."""

import contextlib
import json
from pathlib import Path

import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from tests.fixtures import models
from tests.harness.raw_http import ask, post
from tests.harness.server_process import until
from tests.harness.tritonserver import tritonserver
from tritonclient.utils import InferenceServerException


def test_what_is_written_and_how(tmp_path: Path) -> None:
    models.identity(tmp_path / "models", "echo")
    file = tmp_path / "its.log"
    file.touch()
    flags = ("--model-repository", tmp_path / "models", "--model-control-mode=explicit")
    # Where it listens is told in its log, which this test reads from the file.
    with tritonserver(tmp_path / "log", *flags, f"--log-file={file}") as server:
        server.log = file
        with contextlib.closing(triton.InferenceServerClient(server.address("http"))) as client:
            before = client.get_log_settings()
            assert before == {
                "log_file": str(file),
                "log_info": True,
                "log_warning": True,
                "log_error": True,
                "log_verbose_level": 0,
                "log_format": "default",
            }
            assert client.update_log_settings({"log_info": False, "loud": 1})["log_info"] is False
            at = len(file.read_text())
            client.load_model("echo")
            client.update_log_settings({"log_info": True, "log_format": "ISO8601", "log_warning": False})
            client.unload_model("echo")
            until(lambda: len(file.read_text()) > at, lambda: "nothing is written any more")
            lines = file.read_text()[at:]
            assert "loaded 'echo'" not in lines.replace("unloaded", "")
            assert "T" in lines.splitlines()[0][:11]
            assert "Z I " in lines
            now = client.update_log_settings({"log_verbose_level": 3, "log_error": None})
            assert now == before | {"log_verbose_level": 3, "log_format": "ISO8601", "log_warning": False}
            for settings, status, text in (
                ({"log_file": "x"}, "501", "log file location can not be updated through network protocol"),
                ({"log_format": "x"}, "503", "invalid argument for --log_format, got: x"),
                ({"log_info": 1}, "500", "attempt to access JSON non-boolean as boolean"),
            ):
                with pytest.raises(InferenceServerException) as caught:
                    client.update_log_settings(settings)
                assert (caught.value.status(), text in str(caught.value)) == (status, True)
        with contextlib.closing(triton_grpc.InferenceServerClient(server.address("grpc"))) as grpc:
            told = grpc.update_log_settings({"log_verbose_level": 0, "log_format": "default"}).settings
            assert (told["log_verbose_level"].uint32_param, told["log_format"].string_param) == (0, "default")
        answer = ask(server.port("http"), post("/v2/logging", json.dumps({"log_warning": True}).encode()))
        assert json.loads(answer.body) == before
