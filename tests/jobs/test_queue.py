"""Every caller gets an end, whatever comes between."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kernel_forge.jobs.client import JobCancelled, JobFailed
from kernel_forge.jobs.queue import JobQueue


class SlowWork:
    """Takes a while to run, and a while to stop."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.stopped: list[str] = []
        self.stop_interrupted = False

    def named(self, name: str) -> Callable[[], Coroutine[Any, Any, str]]:
        return lambda: self._run(name)

    async def _run(self, name: str) -> str:
        self.ran.append(name)
        try:
            if name == "broken":
                raise OSError("no")
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                self.stop_interrupted = True
                raise
            self.stopped.append(name)
            raise
        return f"end of {name}"


Submitted = asyncio.Task[str | JobFailed | JobCancelled]


def submit(queue: JobQueue, key: str, work: Callable[[], Coroutine[Any, Any, str]]) -> Submitted:
    return asyncio.create_task(queue.submit(key, work))


async def test_three_submits_for_one_key_all_end_and_the_newest_wins() -> None:
    work, queue = SlowWork(), JobQueue()
    first = submit(queue, "a", work.named("1"))
    await asyncio.sleep(0.01)
    later = [submit(queue, "a", work.named(str(i))) for i in (2, 3, 4)]
    ends = await asyncio.wait_for(asyncio.gather(first, *later), 5)
    assert ends == [JobCancelled(), JobCancelled(), JobCancelled(), "end of 4"]
    assert work.ran == ["1", "4"]
    assert work.stopped == ["1"]
    assert not work.stop_interrupted


async def test_keys_take_turns() -> None:
    work, queue = SlowWork(), JobQueue()
    ends = await asyncio.gather(*(submit(queue, key, work.named(key)) for key in "abc"))
    assert work.ran == ["a", "b", "c"]
    assert ends == ["end of a", "end of b", "end of c"]


async def test_two_queues_do_not_wait_for_each_other() -> None:
    work, one, other = SlowWork(), JobQueue(), JobQueue()
    tasks = [submit(one, "a", work.named("1")), submit(other, "a", work.named("2"))]
    await asyncio.sleep(0.01)
    assert work.ran == ["1", "2"]
    assert await asyncio.gather(*tasks) == ["end of 1", "end of 2"]


async def test_what_raises_is_a_failed_job_and_the_queue_goes_on() -> None:
    work, queue = SlowWork(), JobQueue()
    bad, good = submit(queue, "a", work.named("broken")), submit(queue, "b", work.named("fine"))
    assert await asyncio.wait_for(bad, 5) == JobFailed("crashed", "OSError: no")
    assert await asyncio.wait_for(good, 5) == "end of fine"


async def test_cancel_and_close_settle_waiting_and_running() -> None:
    work, queue = SlowWork(), JobQueue()
    tasks = [submit(queue, key, work.named(key)) for key in "abc"]
    await asyncio.sleep(0.01)
    await queue.cancel("b")
    await queue.close()
    assert await asyncio.wait_for(asyncio.gather(*tasks), 5) == [JobCancelled()] * 3
    assert work.ran == ["a"]


async def test_a_job_whose_caller_is_gone_does_not_run() -> None:
    work, queue = SlowWork(), JobQueue()
    first, second = submit(queue, "a", work.named("1")), submit(queue, "b", work.named("2"))
    await asyncio.sleep(0.01)
    second.cancel()
    await first
    await asyncio.sleep(0.01)
    assert work.ran == ["1"]
