"""`python -m tests.bench`: runs the benchmarks, or compares two results.

In: which workloads, and whether only a part of the data. Out: a table on standard output, and the
same as JSON in a file. For figures that can be trusted the machine must have nothing else to do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import cep

from .results import Row, comparison, read, result, save, table
from .setting import Setting
from .workloads import ON_REQUEST, WORKLOADS


def main() -> int:
    """Does what the command line asks; 0 when it could be done, whatever the figures are."""
    options = _options()
    if options.compare:
        old, new = options.compare
        print(comparison(read(old), read(new)))
        return 0
    setting = Setting(options.data, options.quick, options.repetitions)
    rows = list(_measured(options.only, setting))
    save(result(rows, options.quick), options.output)
    print(table(rows))
    print(f"\nwritten to {options.output}", file=sys.stderr)
    return 0


def _measured(names: list[str], setting: Setting) -> Iterator[Row]:
    """The rows of the workloads, told as they come; one that says so where rules are refused."""
    for name in names:
        try:
            for row in WORKLOADS[name](setting):
                print(table([row]).splitlines()[1], file=sys.stderr, flush=True)
                yield row
        except cep.RuleError as error:
            said = "; ".join(f"{found.code} {found.message}" for found in error.diagnostics)
            yield Row(name=name, value=None, unit="", ok=False, note=f"refused: {said}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    names = f"of {', '.join(WORKLOADS)}; all but {', '.join(ON_REQUEST)}, which installs programs"
    parser.add_argument("only", nargs="*", metavar="WORKLOAD", help=names)
    parser.add_argument("--quick", action="store_true", help="only the first 200,000 events")
    parser.add_argument("--repetitions", type=int, default=3, help="runs to take the median of [3]")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(tempfile.gettempdir()) / "bench",
        help="folder of the event files, which are made when they are missing [%(default)s]",
    )
    parser.add_argument("--output", type=Path, help="the JSON file [build/bench/TIME.json]")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="two results")
    options = parser.parse_args()
    unknown = set(options.only) - set(WORKLOADS)
    if unknown:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    options.only = options.only or [name for name in WORKLOADS if name not in ON_REQUEST]
    if options.output is None:
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        options.output = Path("build") / "bench" / f"{moment}.json"
    return options


if __name__ == "__main__":
    sys.exit(main())
