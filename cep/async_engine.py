"""The engine for programs that run on asyncio.

In: events, from any number of tasks. Out: matches, by asynchronous iteration. The work is done on
one thread of its own, so the loop stays free; what waits on either side is bounded, so whoever
gives events faster than they are handled, or than matches are taken, waits. With state, checkpoints
go on while nothing comes, and a match counts as delivered when the task that took it comes back for
the next one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cep.engine import Engine
from cep.event import LateEvent
from cep.given import instant, is_event
from cep.match import Match
from cep.ruleset import Ruleset
from cep.source.base import Reject
from cep.state.store import StateError
from cep.stats import Stats, Undecided

if TYPE_CHECKING:
    from cep.state.change import RuleChange

ROOM = 10_000
"""Events, and matches, that may wait, unless told otherwise."""

TICK = 0.1
"""Seconds without events after which checkpoints are looked after."""

ResultT = TypeVar("ResultT")


@dataclass(slots=True)
class _Job:
    """Something that the engine is to do: `work` gives matches; `done` is told `answer` then."""

    work: Callable[[Engine], list[Match]]
    events: int = 0
    answer: Callable[[Engine], Any] | None = None
    done: asyncio.Future[Any] | None = None


class AsyncEngine:
    """Runs a ruleset over events in an asyncio program.

    >>> import asyncio, cep
    >>> rules = cep.loads('rule big { on payment where amount > 100 alert "{payment.who}" }')
    >>> async def main() -> str | None:
    ...     async with cep.AsyncEngine(rules) as engine:
    ...         await engine.process({"type": "payment", "time": 1, "amount": 250, "who": "ann"})
    ...         async for match in engine:
    ...             return match.message
    >>> asyncio.run(main())
    'ann'

    `options` are those of `Engine` but `on_match`: `delay`, `state`, and so on. `room`: how
    many events may wait, and how many matches. `on_late` and `on_reject`, as those of `Engine`, are
    called in the loop. Give events and take matches in different tasks, for
    `process` waits while there is no room. Leaving the `async with` block is `suspend()`; after an
    exception what still waits is dropped, and what has been done is durable.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        *,
        room: int = ROOM,
        on_late: Callable[[LateEvent], None] | None = None,
        on_reject: Callable[[str, Reject], None] | None = None,
        **options: Any,
    ) -> None:
        if room < 1:
            raise ValueError("there must be room for one event")
        self._on_late = on_late
        self._on_reject = on_reject
        if "on_match" in options:
            raise ValueError("an AsyncEngine gives its matches by iteration, not to on_match")
        self._make = lambda: Engine(ruleset, **options)
        self._room = room
        self._changed = asyncio.Condition()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cep")
        self._worker: asyncio.Task[None] | None = None
        self._jobs: deque[_Job] = deque()
        self._events = 0
        """Events that have been given and not been handled yet."""
        self._found: deque[Match] = deque()
        self._taken: list[Match] = []
        """Matches whose takers have come back for the next one."""
        self._with_takers = 0
        self._takers = 0
        self._position: Any = None
        self._ending = self._hurry = self._over = False
        self._fault: BaseException | None = None

    async def __aenter__(self) -> Self:
        """Opens the state. Raises StateError where that cannot be used."""
        making = asyncio.ensure_future(self._in_thread(self._make))
        try:
            engine = await asyncio.shield(making)
        except asyncio.CancelledError:
            with suppress(Exception):  # the file is let go of, as soon as it has been opened
                await self._in_thread((await making).abandon)
            raise
        if engine.keeper is not None:
            engine.keeper.trusting = False
        self._connect(engine)
        self._position = engine.position
        self._worker = asyncio.create_task(self._serve(engine))
        return self

    def _connect(self, engine: Engine) -> None:
        """Late events and rejects are told of in the loop's thread."""
        in_loop: Any = asyncio.get_running_loop().call_soon_threadsafe
        if self._on_late is not None:
            engine.on_late = partial(in_loop, self._on_late)
        if self._on_reject is not None:
            engine.on_reject = partial(in_loop, self._on_reject)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.suspend()
            return
        async with self._changed:
            self._drop_jobs()
            self._hurry = True
        with suppress(Exception):  # the exception that is on its way says more
            await self._end()

    # ------------------------------------------------------------------ giving and taking

    async def process(self, events: Any, *, position: Any = None) -> None:
        """Takes one event or an iterable of events, as `Engine.process` does, and returns when they
        are accepted: their matches come by iteration. `position` becomes durable with them.

        Waits while there is no room. Cancelled while it waits, it has taken none of the events.
        Raises RuntimeError after the end, and what has ended the engine before its time.
        """
        batch = [events] if is_event(events) else list(events)
        await self._add(_Job(lambda e: e.process(batch, position=position), len(batch)))

    async def advance_to(self, time: datetime | int | str) -> None:
        """Moves the clock, as `Engine.advance_to` does; what is due comes by iteration."""
        micros = instant(time)
        await self._add(_Job(lambda engine: engine.advance_to(micros)))

    async def checkpoint(self) -> None:
        """Returns when everything given up to now is durable. Raises ValueError without state."""
        await self._ask(lambda engine: None, Engine.checkpoint)

    async def reload(self, ruleset: Ruleset, *, restart: Collection[str] = ()) -> list[RuleChange]:
        """Runs other rules from now on, as `Engine.reload` does; what became of each rule. Matches
        that had to come before come by iteration."""
        changes: list[RuleChange] = []

        def work(engine: Engine) -> list[Match]:
            done = engine.reload(ruleset, restart=restart)
            changes.extend(done.changes)
            return done.matches

        await self._ask(lambda engine: None, work)
        return changes

    async def state_problem(self) -> str | None:
        """Why the state cannot be written at the moment (it is tried again), or None."""
        return await self._ask(lambda engine: engine.state_problem)

    async def stats(self) -> Stats:
        """The numbers up to now."""
        return await self._ask(lambda engine: engine.stats)

    async def undecided(self) -> list[Undecided]:
        """The absences that are open now."""
        return await self._ask(lambda engine: engine.undecided)

    @property
    def position(self) -> Any:
        """The position given with the last events that are durable: where to go on from."""
        return self._position

    async def __aiter__(self) -> AsyncIterator[Match]:
        """The matches as they may go out; ends with the engine. A match that was taken counts as
        delivered when its taker comes back for the next one, or for the end. After a crash before
        that, or before the next checkpoint has noted it, it comes again, with the same id."""
        self._takers += 1
        try:
            while (match := await self._next_match()) is not None:
                self._with_takers += 1
                try:
                    yield match
                finally:
                    self._with_takers -= 1
                self._taken.append(match)
        finally:
            self._takers -= 1
            async with self._changed:
                self._changed.notify_all()

    async def _next_match(self) -> Match | None:
        async with self._changed:
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._found or self._over)
            if self._found:
                self._changed.notify_all()
                return self._found.popleft()
            if self._fault is not None:
                raise self._fault
            return None

    # ------------------------------------------------------------------ ending

    async def suspend(self) -> None:
        """Handles what has been accepted, makes it durable, lets the matches be taken, and ends.

        Waits for the tasks that iterate. With state, matches that nobody takes come first from the
        next engine. Raises what has ended the engine before its time.
        """
        await self._end()

    async def close(self, at_end: str = "undecided") -> None:
        """Says that the input has ended, as `Engine.close` does, then ends like `suspend`."""
        await self._ask(lambda engine: None, lambda engine: engine.close(at_end))
        await self._end()

    async def _end(self) -> None:
        if self._worker is None:
            return
        async with self._changed:
            self._ending = True
            self._changed.notify_all()
        await asyncio.shield(self._worker)
        if self._fault is not None:
            raise self._fault

    # ------------------------------------------------------------------ jobs

    async def _add(self, job: _Job) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._ending or self._over or self._fits(job))
            self._refuse_after_end()
            self._jobs.append(job)
            self._events += job.events
            self._changed.notify_all()

    async def _ask(
        self,
        answer: Callable[[Engine], ResultT],
        work: Callable[[Engine], list[Match]] = lambda engine: [],
    ) -> ResultT:
        done: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        await self._add(_Job(work, answer=answer, done=done))
        return await done

    def _fits(self, job: _Job) -> bool:
        return self._events == 0 or self._events + job.events <= self._room

    def _refuse_after_end(self) -> None:
        if self._fault is not None:
            raise self._fault
        if self._worker is None:
            raise RuntimeError("an AsyncEngine is used inside `async with`")
        if self._ending or self._over:
            raise RuntimeError("the engine has ended")

    def _drop_jobs(self) -> None:
        for job in self._jobs:
            self._events -= job.events
            _tell(job.done, error=self._fault or RuntimeError("the engine has ended"))
        self._jobs.clear()
        self._changed.notify_all()

    # ------------------------------------------------------------------ the worker

    async def _serve(self, engine: Engine) -> None:
        """Does one job after the other, then lets go of the engine."""
        keeps_state = engine.keeper is not None
        try:
            while (job := await self._next_job(keeps_state)) is not None:
                await self._do(engine, job)
            if keeps_state:
                await self._do(engine, _Job(Engine.checkpoint))
            await self._until_taken()
            await self._in_thread(lambda: self._let_go(engine))
        except BaseException as fault:
            self._fault = fault
            self._thread.submit(engine.abandon)
            if not isinstance(fault, Exception):
                raise
        finally:
            self._thread.shutdown(wait=False)
            async with self._changed:
                self._over = True
                self._drop_jobs()

    async def _next_job(self, keeps_state: bool) -> _Job | None:
        """What was asked for; with state, after some silence, a look at the checkpoints; None when
        all has been done and no more will come."""
        async with self._changed:
            try:
                async with asyncio.timeout(TICK if keeps_state else None):
                    await self._changed.wait_for(lambda: self._jobs or self._ending)
            except TimeoutError:
                return _Job(Engine.take)
            return self._jobs.popleft() if self._jobs else None

    async def _do(self, engine: Engine, job: _Job) -> None:
        """Does a job on the thread, and hands out its matches when there is room for them."""
        taken, self._taken = self._taken, []

        def step() -> tuple[list[Match], Any, Any]:
            _confirm(engine, taken)
            found = job.work(engine)
            return found, job.answer(engine) if job.answer is not None else None, engine.position

        found: list[Match] = []
        try:
            found, answer, self._position = await self._in_thread(step)
        except Exception as error:
            _tell(job.done, error=error)
            if job.done is None or isinstance(error, StateError):
                raise
        else:
            _tell(job.done, answer)
        async with self._changed:
            self._events -= job.events
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._ending or len(self._found) < self._room)
            self._found += found
            self._changed.notify_all()

    async def _until_taken(self) -> None:
        """Waits until those who iterate have had all matches."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._hurry or not self._takers or not (self._found or self._with_takers)
            )

    def _let_go(self, engine: Engine) -> None:
        _confirm(engine, self._taken)
        engine.__exit__(None)

    async def _in_thread(self, work: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _confirm(engine: Engine, taken: list[Match]) -> None:
    if engine.keeper is not None:
        engine.keeper.confirm(taken)


def _tell(
    done: asyncio.Future[Any] | None, answer: Any = None, error: BaseException | None = None
) -> None:
    """Answers who has asked, unless they have gone."""
    if done is None or done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(answer)
