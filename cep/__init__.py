"""Complex event processing for Python: rules over event logs and streams.

A host loads rules and gives an engine events:

>>> import cep
>>> rules = cep.loads('''
... rule brute_force {
...   by user
...   sequence within 10m {
...     fail: login{3} where ok == false
...     good: login    where ok == true
...   }
...   alert "{user} got in after {count(fail)} failures"
... }
... ''')
>>> engine = cep.Engine(rules)
>>> events = [{"type": "login", "user": "bob", "ok": False, "time": t} for t in (1, 2, 3)]
>>> events.append({"type": "login", "user": "bob", "ok": True, "time": 4})
>>> [match.message for match in engine.process(events)]
['bob got in after 3 failures']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cep.async_engine import AsyncEngine
    from cep.engine import ConcurrentUse, Engine
    from cep.event import LateEvent
    from cep.extend import HostFunction, function
    from cep.lookup_files import Reloaded
    from cep.match import Match
    from cep.reading import run_sources
    from cep.ruleset import Ruleset, load, loads
    from cep.source.base import Reject
    from cep.state.store import StateError
    from cep.stats import RuleStats, Stats, Undecided
    from dsl.diagnostics import Diagnostic, RuleError

__version__ = "0.1.0"

_HOMES = {
    "AsyncEngine": "cep.async_engine",
    "ConcurrentUse": "cep.engine",
    "Diagnostic": "dsl.diagnostics",
    "Engine": "cep.engine",
    "HostFunction": "cep.extend",
    "LateEvent": "cep.event",
    "Match": "cep.match",
    "Reject": "cep.source.base",
    "Reloaded": "cep.lookup_files",
    "RuleError": "dsl.diagnostics",
    "RuleStats": "cep.stats",
    "Ruleset": "cep.ruleset",
    "StateError": "cep.state.store",
    "Stats": "cep.stats",
    "Undecided": "cep.stats",
    "function": "cep.extend",
    "load": "cep.ruleset",
    "loads": "cep.ruleset",
    "run_sources": "cep.reading",
}

__all__ = [
    "AsyncEngine",
    "ConcurrentUse",
    "Diagnostic",
    "Engine",
    "HostFunction",
    "LateEvent",
    "Match",
    "Reject",
    "Reloaded",
    "RuleError",
    "RuleStats",
    "Ruleset",
    "StateError",
    "Stats",
    "Undecided",
    "function",
    "load",
    "loads",
    "run_sources",
]


def __getattr__(name: str) -> Any:
    """Public names are loaded when they are first used: the command line starts without them."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cep' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
