"""What the server refuses: a status, a slug and a sentence that says what to do."""

from __future__ import annotations


class RefusalError(Exception):
    """A request that is not carried out.

    Attributes:
        status: HTTP status.
        kind: slug for programs.
        facts: further values for programs.
    """

    def __init__(self, status: int, kind: str, message: str, **facts: object) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.facts = facts

    def as_json(self) -> dict[str, object]:
        """The body of the answer."""
        return {"error": self.kind, "message": str(self), **self.facts}
