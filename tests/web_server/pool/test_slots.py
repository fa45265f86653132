"""The fair hand-out of slots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from web_server.errors import TooManyWaiting, Unavailable
from web_server.pool.slots import Slots


def _here() -> bool:
    return False


def _gone() -> bool:
    return True


def _run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(work(), 30)

    asyncio.run(limited())


async def _in_line(slots: Slots, number: int) -> None:
    while slots.waiting < number:
        await asyncio.sleep(0)


def test_slots_go_to_callers_in_order() -> None:
    async def work() -> None:
        slots = Slots(1, 5, 30)
        await slots.take(_here)
        order: list[int] = []

        async def caller(number: int) -> None:
            await slots.take(_here)
            order.append(number)
            slots.give_back()

        tasks = []
        for number in range(4):
            tasks.append(asyncio.ensure_future(caller(number)))
            await _in_line(slots, number + 1)
        assert slots.free == 0
        slots.give_back()
        await asyncio.gather(*tasks)
        assert order == [0, 1, 2, 3] and slots.free == 1 and slots.waiting == 0

    _run(work)


def test_a_full_queue_and_a_late_slot_are_refused() -> None:
    async def work() -> None:
        slots = Slots(1, 0, 30)
        await slots.take(_here)
        with pytest.raises(TooManyWaiting) as full:
            await slots.take(_here)
        assert full.value.retry_after
        late = Slots(1, 1, 0.01)
        await late.take(_here)
        with pytest.raises(Unavailable):
            await late.take(_here)
        late.give_back()
        assert late.free == 1

    _run(work)


def test_who_hung_up_or_was_cancelled_takes_no_slot() -> None:
    async def work() -> None:
        slots = Slots(1, 5, 30)
        await slots.take(_here)
        gone = asyncio.ensure_future(slots.take(_gone))
        cancelled = asyncio.ensure_future(slots.take(_here))
        last = asyncio.ensure_future(slots.take(_here))
        await _in_line(slots, 3)
        slots.give_back()
        cancelled.cancel()
        await last
        with pytest.raises(Unavailable):
            await gone
        slots.give_back()
        assert slots.free == 1

    _run(work)


def test_closing_turns_all_away() -> None:
    async def work() -> None:
        slots = Slots(1, 5, 30)
        await slots.take(_here)
        waiting = asyncio.ensure_future(slots.take(_here))
        await _in_line(slots, 1)
        slots.close()
        for late in (waiting, asyncio.ensure_future(slots.take(_here))):
            with pytest.raises(Unavailable):
                await late

    _run(work)
