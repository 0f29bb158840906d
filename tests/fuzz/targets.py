"""Every target: a row for each family of readers. What reads bytes of strangers has its row here."""

from collections.abc import Mapping

from tests.fuzz import (
    archives,
    config_files,
    djl_routes,
    forms,
    generate_requests,
    http1,
    http2,
    kept_parts,
    rpc_heads,
    rpc_messages,
    tensor_files,
    token_lengths,
    translator_inputs,
    url_paths,
    v2_json,
    worker_wire,
)
from tests.fuzz.target import Target

FAMILIES = (
    http1,
    http2,
    translator_inputs,
    v2_json,
    rpc_messages,
    tensor_files,
    token_lengths,
    forms,
    config_files,
    djl_routes,
    generate_requests,
    kept_parts,
    rpc_heads,
    url_paths,
    archives,
    worker_wire,
)
TARGETS: Mapping[str, Target] = {target.name: target for family in FAMILIES for target in family.TARGETS}
