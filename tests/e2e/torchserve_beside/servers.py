"""The three servers that are asked: their configurations, models, requests and stories."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.e2e.torchserve_beside import stories
from tests.e2e.torchserve_beside.exchange import Request
from tests.e2e.torchserve_beside.grpc_requests import open_calls
from tests.e2e.torchserve_beside.guarded_requests import enveloped_requests, guarded_requests
from tests.e2e.torchserve_beside.http_requests import open_requests
from tests.e2e.torchserve_beside.stories import Step

_ONE = "default_workers_per_model=1\n"


@dataclass(frozen=True)
class Setting:
    """One server: the text of its configuration, the models that it starts with, and what is asked of it."""

    name: str
    text: str
    models: tuple[str, ...]
    requests: Callable[[], list[Request]]
    stories: Mapping[str, Sequence[Step]] = field(default_factory=dict)


SETTINGS = (
    Setting(
        "open",
        f"{_ONE}disable_token_authorization=true\nenable_model_api=true\nmax_request_size=20000\n",
        ("view", "says", "stream", "function", "names", "sequences", "counts", "ticket"),
        lambda: [*open_requests(), *open_calls()],
        stories.OPEN,
    ),
    Setting(
        "guarded",
        f"{_ONE}cors_allowed_origin=https://app.example.org\ncors_allowed_methods=GET,POST\n"
        'cors_allowed_headers=X-A\nmodels={"says": {"1.0": {"marName": "says.mar", "minWorkers": 1, "maxWorkers": 2, '
        '"batchSize": 3, "maxBatchDelay": 9, "responseTimeout": 77}}}\n',
        ("says",),
        guarded_requests,
        stories.GUARDED,
    ),
    Setting(
        "enveloped",
        f"{_ONE}disable_token_authorization=true\nservice_envelope=json\nts_open_inference_protocol=true\n",
        ("plain",),
        enveloped_requests,
    ),
)
