"""How often a process that runs for long looks for garbage."""

import gc

_YOUNG = 20_000
_MIDDLE = 20
_OLD = 50


def settle_heap() -> None:
    """Leave out of every later collection what a process has loaded by now, and collect more seldom.

    By its defaults the collector takes a fifth of the time of a crawl, nearly all of it to look again at modules,
    mapped tables and compiled statements. What is garbage in a visit goes when the last reference does; cycles are few.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
