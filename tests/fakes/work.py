"""How the cost of a function grows with its input, told by processor time and as a ratio alone."""

import gc
import time
from collections.abc import Callable

# Four times the input costs four times the work, or sixteen times when it grows with the square.
FAR_FROM_SQUARE = 10.0
_SHORTEST_S = 0.005
_MOST_DOUBLINGS = 6


def growth(run: Callable[[int], object], size: int) -> float:
    """Run with `size`, enlarged until it can be measured, and with four times as much; give the ratio of the times.

    What stays too quick to be measured at 64 times the size has no growth to speak of, and gives zero.
    """
    small = _seconds(run, size)
    for _ in range(_MOST_DOUBLINGS):
        if small >= _SHORTEST_S:
            break
        size *= 2
        small = _seconds(run, size)
    else:
        if small < _SHORTEST_S:
            return 0.0
    return _seconds(run, size * 4) / small


def _seconds(run: Callable[[int], object], size: int) -> float:
    gc.disable()
    try:
        times = []
        for _ in range(3):
            before = time.process_time()
            run(size)
            times.append(time.process_time() - before)
    finally:
        gc.enable()
    return min(times)
