"""The bells of the daemon at its end."""

import asyncio
import logging
from datetime import timedelta

import pytest

from crawler.clock import SystemClock
from crawler.scheduler import Bells


async def test_a_bell_that_rings_at_the_end_is_cut_off_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    clock = SystemClock()
    rings, ended = asyncio.Event(), asyncio.Event()

    async def ring() -> None:
        rings.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with caplog.at_level(logging.WARNING):
        bells = Bells(clock)
        bells.add("test", ring, timedelta(minutes=1), first_at=clock.now())
        with bells:
            await asyncio.wait_for(rings.wait(), 10)
        await asyncio.wait_for(ended.wait(), 10)
        await asyncio.sleep(0)  # the executor of the bells hears of it in the next round of the loop
    assert caplog.records == []


async def test_a_bell_that_the_end_forestalls_is_left_out_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """The signal may come between the ring and the first step of what it rings for."""
    clock = SystemClock()
    rung = []

    async def ring() -> None:
        rung.append(True)

    with caplog.at_level(logging.WARNING):
        bells = Bells(clock)
        bells.add("test", ring, timedelta(minutes=1), first_at=clock.now())
        with bells:
            pass
        for _ in range(5):
            await asyncio.sleep(0)  # ringing, ending and hearing of it each take a round of the loop
    assert rung == []
    assert caplog.records == []
