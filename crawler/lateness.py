"""How late the event loop is: a bell a second that measures by how much it rings too late.

Whatever keeps the loop from other work, a long parse or a machine without time for us, shows there.
"""

import asyncio

from index.metrics import LOOP_LAG_SECONDS

_EVERY_S = 1.0


class Lateness:
    """Measures the event loop of this process. Use as a context manager."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "Lateness":
        self._wind(asyncio.get_running_loop())
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _wind(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(_EVERY_S, self._ring, loop, loop.time() + _EVERY_S)

    def _ring(self, loop: asyncio.AbstractEventLoop, due_at: float) -> None:
        LOOP_LAG_SECONDS.observe(max(0.0, loop.time() - due_at))
        self._wind(loop)
