"""The ticket of an operation that there is nothing to do about any more."""

from trivium.types.errors import ServeError


class CompletedTicket:
    """The ticket of an operation that ended when it was submitted, or that cannot be cancelled."""

    def cancel(self, why: ServeError) -> None:
        """Too late, or not to be undone half-way."""

    def hold(self) -> None:
        """It answers once."""

    def resume(self) -> None:
        """It was not held."""


COMPLETED = CompletedTicket()
