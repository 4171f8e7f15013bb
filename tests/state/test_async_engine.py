"""The engine for asyncio: bounded, safe to cancel, durable, and matches counted when taken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

import cep

ResultT = TypeVar("ResultT")

EVERY = 'rule every { on e: login alert "{e.n}" }'
QUIET = 'rule quiet { by user sequence { a: login no logout within 10s } alert "{user}" }'


def login(n: int, **more: Any) -> dict[str, Any]:
    return {"type": "login", "time": n, "user": "ann", "n": n, **more}


def run(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Runs a program that must not take long."""
    return asyncio.run(asyncio.wait_for(main, 30))


async def taken(engine: cep.AsyncEngine) -> list[str | None]:
    return [match.message async for match in engine]


def test_events_in_matches_out() -> None:
    async def main() -> list[str | None]:
        async with cep.AsyncEngine(cep.loads(EVERY)) as engine:
            taking = asyncio.create_task(taken(engine))
            await engine.process(login(1))
            await engine.process(login(n) for n in range(2, 6))
            assert (await engine.stats()).events == 5
        return await taking

    assert run(main()) == ["1", "2", "3", "4", "5"]


def test_time_by_hand_and_the_end_of_the_input() -> None:
    async def main() -> list[str | None]:
        async with cep.AsyncEngine(cep.loads(QUIET)) as engine:
            taking = asyncio.create_task(taken(engine))
            await engine.process(login(1))
            await engine.advance_to(12_000_000)
            await engine.process(login(20, user="bob"))
            assert [one.key for one in await engine.undecided()] == [{"user": "bob"}]
            await engine.close("assume-quiet")
            with pytest.raises(RuntimeError, match="has ended"):
                await engine.process(login(30))
        return await taking

    assert run(main()) == ["ann", "bob"]


def test_who_gives_too_fast_waits_and_may_be_cancelled() -> None:
    async def main() -> None:
        async with cep.AsyncEngine(cep.loads(EVERY), room=2) as engine:
            giving = asyncio.create_task(give(engine, 50))
            done, _ = await asyncio.wait({giving}, timeout=0.3)
            assert not done, "nobody takes matches, so there is no room"
            giving.cancel()
            assert await asyncio.gather(giving, return_exceptions=True)
            taking = asyncio.create_task(taken(engine))
            await engine.process(login(1000))
            assert 1 < (await engine.stats()).events < 50
        found = await taking
        assert found[-1] == "1000"
        assert found[:-1] == [str(n) for n in range(len(found) - 1)], "no event in part or twice"

    run(main())


async def give(engine: cep.AsyncEngine, number: int) -> None:
    for n in range(number):
        await engine.process(login(n))


def test_positions_become_durable_while_nothing_comes(tmp_path: Path) -> None:
    async def main() -> None:
        async with cep.AsyncEngine(
            cep.loads(EVERY), state=tmp_path / "cep.db", checkpoint_every=0.01
        ) as engine:
            assert engine.position is None
            await engine.process(login(1), position={"offset": 7})
            first = await anext(aiter(engine))
            assert first.message == "1"
            while engine.position is None:
                await asyncio.sleep(0.01)
            assert engine.position == {"offset": 7}

    run(main())


def test_a_match_that_was_not_taken_comes_first_next_time(tmp_path: Path) -> None:
    rules, file = cep.loads(EVERY), tmp_path / "cep.db"

    async def first() -> None:
        async with cep.AsyncEngine(rules, state=file) as engine:
            await engine.process([login(1), login(2), login(3)], position=3)
            await engine.checkpoint()
            async for match in engine:
                if match.message == "2":
                    break  # and never comes back to say that it has been delivered

    async def go_on(n: int) -> list[str | None]:
        async with cep.AsyncEngine(rules, state=file) as engine:
            assert engine.position == n - 1
            taking = asyncio.create_task(taken(engine))
            await engine.process(login(n), position=n)
        return await taking

    run(first())
    assert run(go_on(4)) == ["2", "3", "4"]
    assert run(go_on(5)) == ["5"], "what was taken has been delivered"


def test_an_exception_drops_what_waits_and_keeps_what_was_done(tmp_path: Path) -> None:
    rules, file = cep.loads(EVERY), tmp_path / "cep.db"

    async def broken() -> None:
        async with cep.AsyncEngine(rules, state=file) as engine:
            await engine.process(login(1), position=1)
            await engine.checkpoint()
            raise KeyError("a mistake of the host")

    async def again() -> list[str | None]:
        async with cep.AsyncEngine(rules, state=file) as engine:
            assert engine.position == 1
            taking = asyncio.create_task(taken(engine))
        return await taking

    with pytest.raises(KeyError):
        run(broken())
    assert run(again()) == ["1"]


def test_cancelling_the_whole_program_leaves_the_state_in_order(tmp_path: Path) -> None:
    rules, file = cep.loads(EVERY), tmp_path / "cep.db"

    async def endless() -> None:
        async with cep.AsyncEngine(rules, state=file, checkpoint_every=0.01) as engine:
            taking = asyncio.create_task(taken(engine))
            for n in range(1_000_000):
                await engine.process(login(n), position=n)
                await asyncio.sleep(0)
            await taking

    async def main() -> None:
        task = asyncio.create_task(endless())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    with cep.Engine(rules, state=file) as engine:
        assert isinstance(engine.position, int)
        assert engine.stats.events == engine.position + 1


def test_cancelling_while_the_state_is_opened_lets_go_of_it(tmp_path: Path) -> None:
    rules, file = cep.loads(EVERY), tmp_path / "cep.db"
    opening, going_on = threading.Event(), threading.Event()
    engine = cep.AsyncEngine(rules, state=file)
    make = engine._make

    def slowly() -> cep.Engine:
        opening.set()
        going_on.wait(10)
        return make()

    async def main() -> None:
        engine._make = slowly
        task = asyncio.create_task(engine.__aenter__())
        await asyncio.to_thread(opening.wait)
        task.cancel()
        going_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
    cep.Engine(rules, state=file).abandon()


def test_one_engine_for_a_state_file(tmp_path: Path) -> None:
    async def main() -> None:
        rules, file = cep.loads(EVERY), tmp_path / "cep.db"
        async with cep.AsyncEngine(rules, state=file):
            with pytest.raises(cep.StateError):
                async with cep.AsyncEngine(rules, state=file):
                    pass

    run(main())


def test_wrong_use_is_told() -> None:
    async def main() -> None:
        rules = cep.loads(EVERY)
        with pytest.raises(RuntimeError, match="inside `async with`"):
            await cep.AsyncEngine(rules).process(login(1))
        with pytest.raises(ValueError, match="room for one"):
            cep.AsyncEngine(rules, room=0)
        with pytest.raises(ValueError, match="by iteration"):
            cep.AsyncEngine(rules, on_match=print)
        async with cep.AsyncEngine(rules) as engine:
            with pytest.raises(ValueError, match="keeps no state"):
                await engine.checkpoint()
            with pytest.raises(ValueError, match="at_end"):
                await engine.close("tomorrow")

    run(main())


def test_late_events_and_rejects_are_told_in_the_loop() -> None:
    told: list[tuple[str, int]] = []

    async def main() -> None:
        here = threading.get_ident()

        def note(kind: str) -> None:
            told.append((kind, threading.get_ident() - here))

        async with cep.AsyncEngine(
            cep.loads(EVERY),
            on_late=lambda late: note(f"late by {late.by_us}"),
            on_reject=lambda source, reject: note(reject.reason[:8]),
        ) as engine:
            await engine.process([login(10), login(4), 5])

    run(main())
    assert sorted(kind for kind, _ in told) == ["an event", "late by 6000000"]
    assert all(other == 0 for _, other in told)


def test_other_rules_while_it_runs() -> None:
    async def main() -> tuple[list[str], list[str | None]]:
        async with cep.AsyncEngine(cep.loads(EVERY)) as engine:
            taking = asyncio.create_task(taken(engine))
            await engine.process(login(1))
            changes = await engine.reload(cep.loads(EVERY.replace("{e.n}", "no. {e.n}")))
            with pytest.raises(ValueError, match="no rules"):
                await engine.reload(cep.loads(""))
            assert await engine.state_problem() is None
            await engine.process(login(2))
            await engine.suspend()
            return [change.kind for change in changes], await taking

    assert run(main()) == (["output"], ["1", "no. 2"])
