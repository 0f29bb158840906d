"""Every key of DJL Serving's `config.properties`, as data: the form of its value, its default, and how it is served.

Nothing else says which keys there are; the table in `docs/djl.md` is made from this. Source: spec sheet `djl`, section
1.3. Pure.
"""

from collections.abc import Mapping

from trivium.servers.djl.words.error_rate_policy import EXPECTED, read_rate
from trivium.servers.djl.words.model_urls import read_devices, read_list
from trivium.settings.kinds import KEY_STORE, PATTERN, SWITCH, TEXT, Address, Form, OneOf, Whole
from trivium.settings.setting import Setting, Support
from trivium.settings.sources import SettingsTable


def _models(text: str) -> object:
    return text.upper() if text.upper() in ("ALL", "NONE") else read_list(text)


_A = Address(most=65534)
_MODELS = Form("ALL, NONE or model URLs", _models)
_N, _R, _S = Whole(), Form(EXPECTED, read_rate), Whole(400, 599)
_PARTLY, _REPORTED = Support.PARTLY, Support.REPORTED
_LOOP = "one event loop serves all connections"

CONFIG = SettingsTable.of(
    "DJL's",
    "key",
    "docs/djl.md",
    (
        Setting("inference_address", _A, "http://127.0.0.1:8080"),
        Setting("management_address", _A, "http://127.0.0.1:8080"),
        Setting(
            "cluster_address",
            _A,
            "http://127.0.0.1:8888",
            support=_REPORTED,
            how="a server runs on one machine",
        ),
        Setting("model_store"),
        Setting("load_models", _MODELS, "ALL"),
        Setting("wait_model_loading", SWITCH, "true"),
        Setting("allow_multi_status", SWITCH, "false"),
        Setting("load_on_devices", Form("*, or devices separated by semicolons", read_devices), "*"),
        Setting("job_queue_size", Whole(least=1), "1000"),
        Setting("batch_size", Whole(least=1), "1"),
        Setting("max_batch_delay", _N, "100"),
        Setting("max_idle_time", _N, "60"),
        Setting("reserved_memory_mb", _N, "500"),
        Setting("max_request_size", Whole(least=1), "67108864"),
        Setting("chunked_read_timeout", Whole(least=1), "120"),
        Setting("number_of_netty_threads", _N, "0", support=_REPORTED, how=_LOOP),
        Setting("use_native_io", SWITCH, "true", support=_REPORTED, how=_LOOP),
        Setting("io_ratio", Whole(most=100), "50", support=_REPORTED, how=_LOOP),
        Setting(
            "model_url_pattern",
            PATTERN,
            "",
            support=_PARTLY,
            how="a URL in a header has to match, too; not with keys, nor with "
            "trivium_management=closed beyond this machine",
        ),
        Setting("cors_allowed_origin"),
        Setting("cors_allowed_methods"),
        Setting("cors_allowed_headers"),
        Setting(
            "keystore",
            TEXT,
            "",
            support=_PARTLY,
            how="the package cryptography reads it (extra pkcs12); certificate_file goes before it",
        ),
        Setting("keystore_pass", TEXT, "changeit"),
        Setting(
            "keystore_type",
            KEY_STORE,
            "PKCS12",
            support=_PARTLY,
            how="PKCS12 alone: convert a JKS with keytool -importkeystore -deststoretype pkcs12",
        ),
        Setting("private_key_file"),
        Setting("certificate_file"),
        Setting(
            "plugin_folder",
            TEXT,
            "plugins",
            support=_REPORTED,
            how="plug-ins are Java, which does not run here",
        ),
        Setting("error_rate_wlm", _R),
        Setting("error_rate_server", _R),
        Setting("error_rate_model", _R),
        Setting("error_rate_any", _R),
        Setting("bad_request_http_code", _S, "400"),
        Setting("wlm_error_http_code", _S, "503"),
        Setting("throttle_error_http_code", _S, "503"),
        Setting("timeout_http_code", _S, "400", support=_REPORTED, how="the original never sends it either"),
        Setting("server_error_http_code", _S, "500"),
        Setting("request_id_header_key", TEXT, "x-request-id"),
        Setting(
            "grpc_address",
            TEXT,
            "127.0.0.1",
            support=_PARTLY,
            how="gRPC is served where this or grpc_port is set",
        ),
        Setting(
            "grpc_port",
            Whole(most=65535),
            "8082",
            support=_PARTLY,
            how="gRPC is served where this or grpc_address is set",
        ),
        Setting(
            "WEB_ROOT",
            TEXT,
            "public",
            support=Support.REFUSED,
            how="files are served by a web server; leave it out",
        ),
        Setting(
            "trivium_management",
            OneOf(("open", "closed"), any_case=True),
            "open",
            support=_PARTLY,
            how="Trivium's own: closed lets models be managed by a management_address of this machine alone",
        ),
        Setting(
            "trivium_install_packages",
            TEXT,
            "start",
            support=_PARTLY,
            how="Trivium's own: whose requirements.txt is installed: none, start (that of models which the server "
            "starts with) or all (also that of models which clients register)",
        ),
    ),
    any_case=True,
)
"""The file `config.properties`."""


OWN_WORDS: Mapping[str, str] = {
    "--install-packages": "trivium_install_packages",
    "--max-body-bytes": "max_request_size",
    "--part-timeout": "chunked_read_timeout",
    "--keystore-password": "keystore_pass",
    "--cors-allowed-origin": "cors_allowed_origin",
    "--cors-allowed-methods": "cors_allowed_methods",
    "--cors-allowed-headers": "cors_allowed_headers",
}
"""Flag of our own -> the key here that sets the same."""
