"""The place of this process in the job, remembered: the process group may be gone before the last trace is written."""

from __future__ import annotations

from rankscope.collector.facts import read_groups
from rankscope.collector.identity import Identity, read_identity
from rankscope.model.manifest import ManifestGroup


class Membership:
    """What is known of this process's rank and groups: the latest that a process group said, if one ever did.

    Attributes:
        identity: rank, world size and backend.
        groups: process groups in creation order.
        notes: what could not be read, and why.
    """

    def __init__(self) -> None:
        self.identity = Identity()
        self.groups: list[ManifestGroup] = []
        self.notes: list[str] = []

    def refresh(self) -> Identity:
        """Ask again; what was known stays where there is no process group (any more). Returns the identity."""
        identity = read_identity()
        if identity.backend or not self.identity.backend:
            self.identity = identity
            self.notes = []
            self.groups = read_groups(self.notes)
        return self.identity
