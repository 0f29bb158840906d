"""A cluster of Ray beyond this machine gets models only where it requires its token."""

import pytest

from trivium.ray.token_policy import fault

TOKEN = {"RAY_AUTH_MODE": "token"}


@pytest.mark.parametrize(
    ("address", "own", "cluster", "found"),
    [
        ("127.0.0.1:6379", {}, {}, ""),
        ("localhost:6379", {}, {}, ""),
        ("[::1]:6379", {}, {}, ""),
        ("10.0.0.5:6379", TOKEN, TOKEN, ""),
        ("10.0.0.5:6379", {"RAY_AUTH_MODE": "TOKEN"}, TOKEN, ""),
        ("10.0.0.5:6379", {}, TOKEN, "no token is given to this command"),
        ("10.0.0.5:6379", {"RAY_AUTH_MODE": "disabled"}, TOKEN, "RAY_AUTH_MODE is 'disabled' here"),
        ("10.0.0.5:6379", TOKEN, {}, "asks for no token"),
        ("10.0.0.5:6379", TOKEN, {"RAY_AUTH_MODE": "disabled"}, "asks for no token"),
        ("ray-head.models.svc:6379", {}, {}, "beyond this machine alone"),
    ],
)
def test_the_token_is_required_off_loopback(address, own, cluster, found) -> None:
    said = fault(address, own, cluster)
    if not found:
        assert said == ""
    else:
        assert found in said
        assert address in said
        assert "ray get-auth-token --generate" in said
