"""Our own server: it speaks every protocol that there is."""

from trivium.server_record import ServerRecord

SERVER = ServerRecord(
    name="native",
    has_console=True,
    withheld=(
        *("", "explanations", "token", "api-description", "wfpredict"),
        *("v1/...:explain", ".../predict"),
    ),
)
