"""Run a command of the package by spark-submit: `dbt-reconcile append datastream --help`."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
from pathlib import Path

_HELP = """usage: dbt-reconcile [OPTION OF spark-submit ...] COMMAND [ARGUMENT ...]

{commands}

A command runs within spark-submit, which has to be on PATH: the one of a cluster, or that of dbt-reconcile[spark].
SPARK_CONF_DIR names the package's conf directory. `dbt-reconcile COMMAND --help` needs no Spark.
"""
# What spark-submit would take for a job, and is none.
_NO_COMMANDS = {"__main__"}


def commands() -> dict[str, Path]:
    """Return the commands, which are the scripts beside this one."""
    scripts = sorted(Path(__file__).parent.glob("*.py"))
    return {script.stem: script for script in scripts if script.stem not in _NO_COMMANDS}


def main() -> None:
    """Replace this process by spark-submit; help is answered here."""
    words, known = sys.argv[1:], commands()
    place = next((at for at, word in enumerate(words) if word in known), None)
    if place is None:
        told = _HELP.format(commands="\n".join(f"  {name:10} {_said_of(script)}" for name, script in known.items()))
        if words[:1] in (["--help"], ["-h"]):
            sys.stdout.write(told)
            return
        any_of = ", ".join(known)
        sys.stderr.write(f"dbt-reconcile: a command is missing: one of {any_of}; see `dbt-reconcile --help`.\n")
        sys.exit(2)
    script, arguments = known[words[place]], words[place + 1 :]
    if {"--help", "-h"} & {*arguments}:
        sys.argv = [str(script), *arguments]
        runpy.run_path(str(script), run_name="__main__")
        return
    # Of an environment that is not activated, it lies beside this Python.
    submit = shutil.which("spark-submit") or shutil.which("spark-submit", path=str(Path(sys.executable).parent))
    if submit is None:
        sys.stderr.write(
            "dbt-reconcile: spark-submit is not on PATH: put the bin directory of a Spark there, or install "
            "dbt-reconcile[spark].\n"
        )
        sys.exit(2)
    os.execv(submit, [submit, *words[:place], str(script), *arguments])


def _said_of(script: Path) -> str:
    """Return the first sentence of a script's own description, without the command that it names."""
    first = script.read_text(encoding="utf-8").partition('"""')[2].partition("\n")[0]
    return first.partition(": `")[0].rstrip('."')


if __name__ == "__main__":
    main()
