"""The matrix: long tests in named parts of at most fifteen minutes, run in turn by CI, by name for a release.

python tests/matrix.py             the parts, and when each passed last
python tests/matrix.py spanner     run a part; docs/matrix.md has the result afterwards
python tests/matrix.py --in-turn   run the part whose turn it is, by the number of the commit; writes nothing. A part
                                   that is stopped by its limit, before any test failed, is named and not red: how
                                   long a part takes depends on the machine
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import lanes

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "matrix.md"
ICEBERG = ["--file-format", "iceberg"]
FORMATS = {"delta": [], "iceberg": ICEBERG}
# What pytest is given for each part; all run on two workers.
READERS = ["tests/process/test_append_spanner.py", "tests/process/test_append_bigtable.py"]
KILLS, DEATHS = "tests/process/test_kills.py", "tests/process/test_dying_appends.py"
PARITY = "tests/process/test_spanner_parity.py"
LOST = "tests/functional/test_lost_changes_on_tables.py"
CAPTURES = ["tests/fold/test_capture.py", "tests/fold/test_capture_histories.py"]
PARTS: dict[str, list[str]] = {
    "histories": ["-m", "matrix", "tests/fold", "-k", "not real_files and not test_capture and not _dies_"],
    **{
        f"captures-{source}": ["-m", "matrix", *CAPTURES, "-k", source]
        for source in ("oracle", "mysql", "postgresql", "sqlserver")
    },
    "real-files": ["tests/fold/test_real_files.py"],
    **{
        f"kills-{name}-{part}": [*of, "-m", "matrix", KILLS, "-k", f"random_moments and {part}"]
        for name, of in FORMATS.items()
        for part in ("first", "second")
    },
    "deaths-of-runs": ["-m", "matrix", "tests/fold", "-k", "_dies_"],
    "deaths-of-runs-on-tables": ["-m", "soak or matrix", "tests/process/test_killed_runs.py"],
    **{f"deaths-of-appends-{name}": [*of, DEATHS] for name, of in FORMATS.items()},
    **{f"kills-{name}-places": [*of, "-m", "matrix", KILLS, "-k", "named_place"] for name, of in FORMATS.items()},
    "spanner": [
        "-m",
        "matrix",
        READERS[0],
        PARITY,
        "-k",
        "not 1500 and not cut_of_each and not is_killed and not a_tenth",
    ],
    "spanner-captures": ["-m", "matrix", PARITY, "-k", "1500"],
    "spanner-cuts": ["-m", "matrix", PARITY, "-k", "cut_of_each"],
    "spanner-kills-googlesql": ["-m", "matrix", PARITY, "-k", "is_killed and googlesql"],
    "spanner-kills-postgresql": ["-m", "matrix", PARITY, "-k", "is_killed and postgresql"],
    **{f"spanner-repairs-{name}": [*of, "-m", "matrix", PARITY, "-k", "a_tenth"] for name, of in FORMATS.items()},
    "bigtable": ["-m", "matrix", READERS[1], "tests/process/test_bigtable_kills.py"],
    "datastream-iceberg": [
        *ICEBERG,
        "tests/process/test_killed_runs.py",
        "tests/process/test_parity_command.py",
    ],
    "lifecycle": ["-m", "matrix", "tests/lifecycle"],
    "lifecycle-iceberg": [*ICEBERG, "-m", "soak or matrix", "tests/lifecycle", "tests/functional/test_iceberg.py"],
    "append-iceberg": [*ICEBERG, "tests/process/test_append_datastream.py", "tests/functional/test_parity.py"],
    "readers-iceberg": [*ICEBERG, *READERS, "tests/process/test_bigtable_kills.py"],
    "snapshots": ["-m", "matrix", "tests/functional", "-k", "not lost_changes and not maintenance"],
    "four-months": ["-m", "matrix", "tests/functional/test_months_of_maintenance.py"],
    **{
        f"lost-changes-{name}-{part}": [*of, "-m", "matrix", LOST, "-k", sources]
        for name, of in FORMATS.items()
        for part, sources in {"first": "oracle or mysql", "second": "postgresql or sqlserver"}.items()
    },
    **{f"live-parity-{n}": ["-m", "matrix", "tests/cluster/test_live_parity.py", "-k", n] for n in ("first", "second")},
    "live-repair": ["-m", "matrix", "tests/cluster/test_live_repair.py"],
    "live-proofs": ["-m", "matrix", "tests/cluster/test_live_parity.py", "-k", "proofs"],
    "object-store": ["-m", "matrix", "tests/cluster/test_object_store.py"],
    "concurrent-runs-short": ["-m", "matrix", "tests/cluster", "-k", "short"],
    **{f"concurrent-runs-{n}": ["-m", "matrix", "tests/cluster", "-k", f"series-{n:02}"] for n in range(1, 11)},
}
# Parts of hours. Stopped at any moment, the same command goes on with the tables in target/<part>.
GOES_ON = {"four-months"}
# Parts that are lanes: tests/lanes.py runs them, each in an environment of its own, and keeps their table.
LANES = ["lanes", *lanes.LANES]
# The exit code of a part that its limit stopped.
LATE = 124
_ROW = re.compile(r"^\| `(?P<part>[\w-]+)` \| (?P<result>[^|]*) \| (?P<commit>[^|]*) \| (?P<date>[^|]*) \|", re.M)


def run(part: str, minutes: float) -> tuple[int, str]:
    """Run a part for so long at most, and return its exit code and what pytest said last."""
    # It ends at its first failure: so of a part that is stopped late, it is known that no test failed until then.
    if part in LANES:
        words = [sys.executable, str(ROOT / "tests" / "lanes.py"), part]
    else:
        words = [sys.executable, "-m", "pytest", "-x", "-n", "2", "--dist", "loadfile", "--durations=5", *PARTS[part]]
    last, late = "", threading.Event()
    # A session of its own: what is late is stopped with all the servers that its tests have started.
    environment = os.environ | ({"RECONCILE_SESSION": str(ROOT / "target" / part)} if part in GOES_ON else {})
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as running:

        def stop() -> None:
            late.set()
            os.killpg(running.pid, signal.SIGKILL)

        timer = threading.Timer(60 * minutes, stop)
        timer.start()
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            last = line.strip(" =\n") or last
        timer.cancel()
    return (LATE, f"stopped after {minutes:g} minutes") if late.is_set() else (running.wait(), last)


def last_results() -> dict[str, dict[str, str]]:
    """Return what docs/matrix.md says of each part."""
    text = RESULTS.read_text() if RESULTS.exists() else ""
    return {row["part"]: {k: v.strip() for k, v in row.groupdict().items()} for row in _ROW.finditer(text)}


def note(part: str, result: str) -> None:
    """Write down a part that passed: its row in docs/matrix.md."""
    # This file itself is none of what was tested.
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{RESULTS.relative_to(ROOT)}")
    commit = _git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")
    kept = RESULTS.read_text().splitlines()
    rows = {row["part"]: kept_row for kept_row in kept if (row := _ROW.match(kept_row))}
    rows[part] = f"| `{part}` | {result} | {commit} | {datetime.now(UTC):%Y-%m-%d} |"
    head = [line for line in kept if not _ROW.match(line)]
    RESULTS.write_text("\n".join([*head, *(rows[name] for name in PARTS if name in rows)]) + "\n")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Run one part, or show all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=[*PARTS, *LANES])
    parser.add_argument("--in-turn", action="store_true", help="the part whose turn it is")
    parser.add_argument("--minutes", type=float, help="stop it after so many: 15, and for all lanes 90")
    asked = parser.parse_args()
    known = last_results() | lanes.last_results()
    part = list(PARTS)[int(_git("rev-list", "--count", "HEAD")) % len(PARTS)] if asked.in_turn else asked.part
    if part is None:
        for name in [*PARTS, *lanes.LANES]:
            print(f"{name:12} {known.get(name, {}).get('result', 'never passed')}")
        return 0
    code, said = run(part, asked.minutes or (90 if part == "lanes" else 15))
    if code == 0 and not asked.in_turn and part not in LANES:
        note(part, said)
    elif code == LATE and asked.in_turn:
        print(f"matrix: {part} was {said}. No test had failed. It has to be run by name: `make matrix PART={part}`.")
        return 0
    elif code:
        before = known.get(part)
        passed = f"it passed last on {before['date']} at commit {before['commit']}" if before else "it never passed"
        print(f"matrix: {part} is red ({said}); {passed}. Run it with `make matrix PART={part}`.")
        return code if before or not asked.in_turn else 0
    return code


if __name__ == "__main__":
    sys.exit(main())
