"""The flags of `tritonserver`: which there are, and how a value is read."""

import re
from pathlib import Path

import pytest

from trivium.servers.triton.command.flag_table import FLAGS, GROUPS
from trivium.servers.triton.command.flags import read
from trivium.settings.setting import Setting, Support
from trivium.types.errors import ServeError

ORIGINALS = """
--id --exit-timeout-secs --log-verbose --log-info --log-warning --log-error --log-format --log-file --model-store
--model-repository --exit-on-error --disable-auto-complete-config --strict-readiness --model-control-mode
--repository-poll-secs --load-model --model-config-name --model-load-thread-count --model-load-retry-count
--model-namespacing --enable-peer-access --allow-http --http-address --http-port --reuse-http-port
--http-header-forward-pattern --http-thread-count --http-restricted-api --allow-grpc --grpc-address --grpc-port
--reuse-grpc-port --grpc-header-forward-pattern --grpc-infer-allocation-pool-size --grpc-use-ssl --grpc-use-ssl-mutual
--grpc-server-cert --grpc-server-key --grpc-root-cert --grpc-infer-response-compression-level --grpc-keepalive-time
--grpc-keepalive-timeout --grpc-keepalive-permit-without-calls --grpc-http2-max-pings-without-data
--grpc-http2-min-recv-ping-interval-without-data --grpc-http2-max-ping-strikes --grpc-max-connection-age
--grpc-max-connection-age-grace --grpc-restricted-protocol --allow-sagemaker --sagemaker-port
--sagemaker-safe-port-range --sagemaker-thread-count --allow-vertex-ai --vertex-ai-port --vertex-ai-thread-count
--vertex-ai-default-model --allow-metrics --allow-gpu-metrics --allow-cpu-metrics --metrics-address --metrics-port
--metrics-interval-ms --metrics-config --trace-config --backend-directory --backend-config --repoagent-directory
--cache-config --cache-directory --rate-limit --rate-limit-resource --pinned-memory-pool-byte-size
--cuda-memory-pool-byte-size --cuda-virtual-address-size --min-supported-compute-capability
--buffer-manager-thread-count --host-policy --model-load-gpu-limit --strict-model-config --response-cache-byte-size
--trace-file --trace-level --trace-rate --trace-count --trace-log-frequency
"""
"""Those of release 2.51, as its usage names them."""

NEWER = {
    "--http-max-input-size",
    "--allow-client-shm",
    "--grpc-infer-thread-count",
    "--grpc-max-response-pool-size",
}


def test_every_flag_of_the_original_is_there() -> None:
    assert set(FLAGS) == set(ORIGINALS.split()) | NEWER


def test_a_flag_is_in_one_group() -> None:
    assert sum(map(len, GROUPS.values())) == len(FLAGS)


@pytest.mark.parametrize("flag", FLAGS.values(), ids=lambda flag: str(flag.name))
def test_what_is_not_served_says_why(flag: Setting) -> None:
    assert flag.support is Support.YES or flag.how


@pytest.mark.parametrize("flag", FLAGS.values(), ids=lambda flag: str(flag.name))
def test_the_default_is_a_value_of_its_kind(flag: Setting) -> None:
    text = str(flag.default)
    assert flag.kind.read(text) == flag.default
    assert type(flag.kind.read(text)) is type(flag.default)


def test_every_flag_has_a_row_in_the_manual() -> None:
    page = (Path(__file__).parents[5] / "docs" / "triton.md").read_text()
    assert set(re.findall(r"^\| `(--[a-z0-9-]+)` \| \w", page, re.MULTILINE)) >= set(FLAGS)


@pytest.mark.parametrize(
    ("flag", "text", "value"),
    [
        ("--exit-on-error", "true", True),
        ("--exit-on-error", "ON", True),
        ("--exit-on-error", "1", True),
        ("--exit-on-error", "False", False),
        ("--exit-on-error", "off", False),
        ("--exit-on-error", "0", False),
        ("--http-port", "8000", 8000),
        ("--trace-count", "-1", -1),
        ("--metrics-interval-ms", "0.5", 0.5),
        ("--id", "", ""),
        ("--log-format", "ISO8601", "ISO8601"),
    ],
)
def test_values(flag: str, text: str, value: object) -> None:
    assert read(FLAGS[flag], text) == value
    assert type(read(FLAGS[flag], text)) is type(value)


@pytest.mark.parametrize(
    ("flag", "text", "says"),
    [
        ("--exit-on-error", "maybe", 'Bad option: "--exit-on-error".\ninvalid value for bool option: maybe'),
        ("--exit-on-error", "", "invalid value for bool option: "),
        ("--http-port", "abc", "Invalid option value. Got abc"),
        ("--http-port", "1.5", "Invalid option value. Got 1.5"),
        ("--http-port", str(2**70), "Invalid option value"),
        ("--metrics-interval-ms", "nan", "Invalid option value. Got nan"),
        ("--metrics-interval-ms", "inf", "Invalid option value. Got inf"),
        ("--log-format", "iso", "invalid argument for --log-format"),
        ("--model-control-mode", "all", "invalid argument for --model-control-mode"),
    ],
)
def test_what_is_no_value(flag: str, text: str, says: str) -> None:
    with pytest.raises(ServeError) as caught:
        read(FLAGS[flag], text)
    assert says in caught.value.message
