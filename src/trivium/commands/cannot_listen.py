"""Says to a person why a server cannot listen, and what to do."""

import os

import click

from trivium.types.listeners import Listener, Role

_OPTIONS = {"gRPC management": "management-grpc"}
"""Listener -> what its options begin with, where that is not its name."""


class CannotListen(click.ClickException):
    """The address of a service cannot be had, or (without one) the log of what is asked there."""

    def __init__(self, message: str, service: str = "", address: str = "") -> None:
        super().__init__(message)
        self.service = service
        self.address = address


def cannot_listen(error: OSError, listener: Listener) -> CannotListen:
    """Return the end of a command whose listener found a port or an access log that it cannot have."""
    if error.filename is not None:
        return CannotListen(
            f"Cannot write the access log {error.filename}: {error.strerror}. Choose another file with "
            "--access-log, or '-' for standard output."
        )
    name, bind = _OPTIONS.get(listener.name, listener.name.lower()), listener.bind
    is_apart = listener.role is not Role.INFERENCE
    off = f"--{name}-port=-1" if is_apart else f"--no-{name}"
    return CannotListen(
        f"Cannot listen on {bind.host} port {bind.port}: {_cause(error)}. Choose another with "
        f"--{name}-port (0 takes a free one), or switch it off with {off}, or stop what listens there.",
        listener.name,
        str(bind),
    )


def _cause(error: OSError) -> str:
    """Return what the system says, in place of what the event loop makes of it, which names the address again."""
    if error.errno is None or error.errno < 0:  # a host that has no address
        return error.strerror or str(error)
    return os.strerror(error.errno)


def taken(error: CannotListen, where: str) -> str:
    """Return the sentence for a log about an address that cannot be had; `where` is what another is chosen by."""
    return (
        f"Failed to listen: {error.address} ({error.service}) is taken, or not an address of this machine. Choose "
        f"another {where} (port 0 takes a free one), or stop what listens there."
    )
