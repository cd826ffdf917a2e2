"""Changes of a module that no test notices: operators, constants, guards and arguments, one at a time.

Needs coverage and pytest-cov, which `make setup` does not install: `pip install --target DIR --no-deps coverage
pytest-cov`. First note which test runs which line, then ask, in a clone of the repository (its files are changed):

    PYTHONPATH=DIR COVERAGE_FILE=lines.db python -m pytest -p pytest_cov --cov=ingestion --cov-context=test \\
        --cov-report= tests/unit tests/process/test_bigtable_reader.py tests/process/test_spanner_windows.py
    PYTHONPATH=ingestion:tests python tests/mutants.py lines.db jdbc/mysql.py staging.py
"""

from __future__ import annotations

import ast
import copy
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import google.cloud.bigtable
import google.cloud.spanner
import hypothesis
import pyspark.sql.datasource
import pyspark.sql.functions
import pytest

MODULES = Path("ingestion") / "reconcile_jobs"
SECONDS, TESTS = 60, 60  # at most, for each mutant
LOADED = (google.cloud.bigtable, google.cloud.spanner, hypothesis, pyspark.sql)  # once, before the forks
SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip


def mutants(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Return each place with what could stand there instead."""
    types = {part for node in ast.walk(tree) for name in ("annotation", "returns")
             if (type_ := getattr(node, name, None)) for part in ast.walk(type_)}  # fmt: skip
    for node in ast.walk(tree):
        if node not in types:
            for instead in _instead(node):
                yield node, instead
            if isinstance(node, ast.If):
                yield node.test, ast.Constant(False)
                yield node.test, ast.Constant(True)


def _instead(node: ast.AST) -> Iterator[ast.AST]:
    changed = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and isinstance(changed, ast.Compare):
        changed.ops[0] = SWAPPED[type(node.ops[0])]()
        yield changed
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        for at in range(len(node.values)):
            rest = node.values[:at] + node.values[at + 1 :]
            yield ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]
    elif (
        isinstance(node, ast.BinOp)
        and type(node.op) in SWAPPED
        and not _is_text(node.left)
        and not _is_text(node.right)
    ):
        yield ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Call):
        for at, keyword in enumerate(node.keywords):
            if keyword.arg:
                yield ast.Call(node.func, node.args, node.keywords[:at] + node.keywords[at + 1 :])
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            yield ast.Call(ast.Name("max" if node.func.id == "min" else "min"), node.args, node.keywords)
    elif isinstance(node, ast.Raise | ast.Continue | ast.Break) or _is_call(node):
        yield ast.Pass()


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def tests_of_lines(database: str, module: Path) -> dict[int, set[str]]:
    """Return the tests that run each line."""
    query = (
        "select line_bits.numbits, context.context from line_bits join file on file.id = file_id "
        "join context on context.id = context_id where file.path like ?"
    )
    tests: dict[int, set[str]] = {}
    for bits, context in sqlite3.connect(database).execute(query, [f"%/{module}"]):
        for line in (8 * at + bit for at, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1):
            tests.setdefault(line, set()).add(context.split("|")[0])
    return tests


def is_noticed(tests: set[str]) -> bool:
    """Run tests in a process of their own."""
    process = os.fork()
    if process == 0:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        first = sorted(tests, key=lambda test: (not test.startswith("tests/unit"), test))[:TESTS]
        os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *first])))
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return True


def main(database: str, names: list[str]) -> None:
    """Print each change that no test notices, with its line."""
    for name in names:
        module = MODULES / name
        text, noticed, unnoticed = module.read_text(), 0, 0
        lines, tests = text.splitlines(keepends=True), tests_of_lines(database, module)
        begins = [sum(len(line.encode()) for line in lines[:at]) for at in range(len(lines))]
        for node, instead in mutants(ast.parse(text)):
            begin = begins[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
            end = begins[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            new = ast.unparse(ast.fix_missing_locations(instead))
            changed = text.encode()[:begin] + f"({new})".encode() + text.encode()[end:]
            if isinstance(node, ast.stmt):
                changed = text.encode()[:begin] + new.encode() + text.encode()[end:]
            covering = set().union(*(tests.get(at, set()) for at in range(node.lineno, node.end_lineno + 1))) - {""}  # type: ignore[attr-defined]
            try:
                ast.parse(changed)
            except SyntaxError:  # within a text, as of a format
                continue
            module.write_bytes(changed)
            try:
                was_noticed = bool(covering) and is_noticed(covering)
            finally:
                module.write_text(text)
            noticed, unnoticed = noticed + was_noticed, unnoticed + (not was_noticed)
            if not was_noticed:
                old = " ".join(text.encode()[begin:end].decode().split())
                print(
                    f"{name}:{node.lineno}: {'no test runs' if not covering else 'unnoticed'}: {old} -> {new}",
                    flush=True,
                )  # type: ignore[attr-defined]
        print(f"{name}: {noticed} noticed, {unnoticed} not", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
