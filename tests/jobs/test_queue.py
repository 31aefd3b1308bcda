"""Every caller gets an end, whatever comes between."""

import asyncio
from collections.abc import Callable

from kernel_forge.domain.event import Progress
from kernel_forge.jobs.client import JobCancelled, JobClient, JobEnd, JobFailed
from kernel_forge.jobs.queue import JobQueue
from kernel_forge.jobs.requests import FileReport, VerifyRequest


class SlowClient(JobClient):
    """Takes a while to run, and a while to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str] = []
        self.stopped: list[str] = []
        self.stop_interrupted = False

    async def run(self, request: VerifyRequest, report: Callable[[Progress], None], time_limit: float) -> JobEnd:
        self.ran.append(request.text)
        try:
            if request.text == "broken":
                raise OSError("no")
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                self.stop_interrupted = True
                raise
            self.stopped.append(request.text)
            raise
        return FileReport((), ())


def submit(queue: JobQueue, key: str, text: str) -> "asyncio.Task[JobEnd]":
    return asyncio.create_task(queue.submit(key, VerifyRequest("/a.cu", text), lambda _: None))


async def test_three_submits_for_one_key_all_end_and_the_newest_wins() -> None:
    client = SlowClient()
    queue = JobQueue(client)
    first = submit(queue, "a", "1")
    await asyncio.sleep(0.01)
    later = [submit(queue, "a", str(i)) for i in (2, 3, 4)]
    ends = await asyncio.wait_for(asyncio.gather(first, *later), 5)
    assert ends == [JobCancelled(), JobCancelled(), JobCancelled(), FileReport((), ())]
    assert client.ran == ["1", "4"]
    assert client.stopped == ["1"]
    assert not client.stop_interrupted


async def test_files_take_turns() -> None:
    client = SlowClient()
    queue = JobQueue(client)
    ends = await asyncio.gather(*(submit(queue, key, key) for key in "abc"))
    assert client.ran == ["a", "b", "c"]
    assert ends == [FileReport((), ())] * 3


async def test_a_client_that_raises_is_a_failed_job_and_the_queue_goes_on() -> None:
    queue = JobQueue(SlowClient())
    bad, good = submit(queue, "a", "broken"), submit(queue, "b", "fine")
    assert isinstance(await asyncio.wait_for(bad, 5), JobFailed)
    assert isinstance(await asyncio.wait_for(good, 5), FileReport)


async def test_cancel_and_close_settle_waiting_and_running() -> None:
    client = SlowClient()
    queue = JobQueue(client)
    tasks = [submit(queue, key, key) for key in "abc"]
    await asyncio.sleep(0.01)
    await queue.cancel("b")
    await queue.close()
    assert await asyncio.wait_for(asyncio.gather(*tasks), 5) == [JobCancelled()] * 3
    assert client.ran == ["a"]


async def test_a_job_whose_caller_is_gone_does_not_run() -> None:
    client = SlowClient()
    queue = JobQueue(client)
    first, second = submit(queue, "a", "1"), submit(queue, "b", "2")
    await asyncio.sleep(0.01)
    second.cancel()
    await first
    await asyncio.sleep(0.01)
    assert client.ran == ["1"]
