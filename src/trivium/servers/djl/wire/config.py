"""Options of DJL's protocol, as an operator gives them."""

from dataclasses import dataclass

from trivium.settings.option import option


@dataclass(frozen=True, slots=True)
class DjlConfig:
    """Settings of DJL Serving's protocol that its `config.properties` has."""

    multi_status: bool = option(
        "--djl-multi-status", False, "Answer /ping with 207 while a model is being loaded."
    )
    request_id_header: str = option(
        "--djl-request-id-header", "x-request-id", "Header that a request's id is read from."
    )
    prometheus: bool = option(
        "--djl-prometheus",
        False,
        "Show what DJL handlers count at /server/metrics, too, in Prometheus' text.",
    )
    handler_override: bool = option(
        "--djl-handler-override",
        False,
        "Let a request name the function of a DJL handler that answers it, in a header named handler.",
    )
    statuses: str = option(
        "--djl-statuses",
        "",
        "Statuses of inference's own errors, like 'bad_request=422,throttle=429': bad_request (400), wlm_error (503), "
        "throttle (503) and server_error (500).",
    )
    error_rates: str = option(
        "--djl-error-rates",
        "",
        "Errors of predictions behind which /ping is 503 from then on, like 'wlm=5/PT1M,any=20': of wlm (queues and "
        "workers), server, model and any; a number alone is one per minute.",
    )
