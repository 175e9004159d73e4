"""Arithmetic on one rank's host thread and compute stream, for scenarios whose device never waits for launches."""

from __future__ import annotations

from dataclasses import dataclass

from rankscope.errors import UsageError
from rankscope.testing.program import HOST_OVERHEAD_NS, KERNEL_HOST_NS, LAUNCH_DELAY_NS, LAUNCH_NS, NESTING_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """When the host calls a collective: c10d row, `record_param_comms` row, launch row, end of the launch."""

    operator_ns: int
    recorded_ns: int
    launched_ns: int
    earliest_ns: int


@dataclass(slots=True, kw_only=True)
class Cursor:
    """Where the host thread is, and when the compute stream will have done what was launched.

    Attributes:
        name: the scenario, for messages.
        host_ns: the host thread.
        device_ns: end of the compute launched so far; on gloo the host thread itself.
        on_cpu: compute runs on the host thread.
    """

    name: str
    host_ns: int
    device_ns: int
    on_cpu: bool = False

    def hold(self, duration_ns: int) -> None:
        """Let the host work; on gloo this counts as compute."""
        self.host_ns += duration_ns
        if self.on_cpu:
            self.device_ns = self.host_ns

    def run(self, duration_ns: int) -> None:
        """Launch compute that keeps the stream busy for `duration_ns`; nothing for 0."""
        if duration_ns == 0:
            return
        if self.on_cpu:
            self.hold(duration_ns)
            return
        self.require_ahead(self.host_ns + LAUNCH_DELAY_NS, self.device_ns)
        self.device_ns += duration_ns
        self.host_ns += KERNEL_HOST_NS

    def call(self, needed_ns: int) -> Call:
        """A collective called now and needed on its stream at `needed_ns`; the host is not moved."""
        recorded_ns = self.host_ns + NESTING_NS
        launched_ns = recorded_ns + HOST_OVERHEAD_NS
        earliest_ns = launched_ns + LAUNCH_NS
        self.require_ahead(earliest_ns, needed_ns)
        return Call(
            operator_ns=self.host_ns,
            recorded_ns=recorded_ns,
            launched_ns=launched_ns,
            earliest_ns=earliest_ns,
        )

    def require_ahead(self, launched_ns: int, needed_ns: int) -> None:
        """Refuse parameters for which the device would wait for the host.

        Raises:
            UsageError: the launch ends after the device needs it; the answers only hold for a busy device.
        """
        if launched_ns > needed_ns:
            raise UsageError(
                f"{self.name}: the device would wait {launched_ns - needed_ns} ns for a launch that ends at "
                f"{launched_ns} ns. Give its compute longer durations: the given answers "
                "hold only where launches are ahead of the device."
            )
