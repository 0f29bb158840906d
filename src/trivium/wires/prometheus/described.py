"""Describes the route of the metrics to programs. Pure."""

from collections.abc import Sequence

from trivium.codecs.routes import HttpRoute, described
from trivium.types.described import (
    TEXT,
    TEXT_KIND,
    DescribedBody,
    DescribedVerb,
    WireDescription,
    json_body,
    object_of,
)

METRICS = "metrics"


def of_rows(rows: Sequence[HttpRoute]) -> WireDescription:
    """Describe these routes; each has all metrics."""
    verb = DescribedVerb(
        summary="What the server and its models count, for Prometheus",
        answers={"200": DescribedBody({TEXT_KIND: TEXT})},
    )
    error = json_body(object_of({"error": TEXT}))
    return WireDescription("Metrics", described(rows, {METRICS: verb}), {"4XX": error, "5XX": error})
