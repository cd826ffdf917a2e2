"""Prove by checksums that models equal their tables at one position: `spark-submit prove.py --help`."""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from reconcile_jobs.jdbc.connection import Source, secret_properties
from reconcile_jobs.jdbc.harmless_properties import check_properties
from reconcile_jobs.jdbc.kinds import database_of
from reconcile_jobs.process import session
from reconcile_jobs.process.command_line import Parser, seconds_of
from reconcile_jobs.process.console import Console
from reconcile_jobs.process.errors import DataError, Fault, JobError, Undecided, UsageError
from reconcile_jobs.proofs.certificate import document_of, html_of, text_of, written
from reconcile_jobs.proofs.project_side import DbtProject
from reconcile_jobs.proofs.proving import Asked, Proof, forget, prove, record
from reconcile_jobs.proofs.replay import replayed, worst_of

_EPILOG = """
The source and the model each add up the hashes of their rows, in 4,096 buckets. Only rows of buckets that differ are
read, and get the verdicts of the test reconcile.parity: see docs/proofs.md. All queries of the source are at one
position, on one connection that only reads:

  PostgreSQL  one transaction, REPEATABLE READ and READ ONLY, in one snapshot
  MySQL       one transaction WITH CONSISTENT SNAPSHOT, READ ONLY. URLs begin with jdbc:mariadb:
  Oracle      AS OF one SCN; the user also needs EXECUTE on DBMS_CRYPTO
  SQL Server  one transaction under SNAPSHOT isolation; SQL Server 2019 or later

Rights, properties of the connection and drivers are those of `snapshot.py jdbc --help`: user and password come from
RECONCILE_JDBC_USER and RECONCILE_JDBC_PASSWORD, or from the file of --properties.

The models and what the model's test reconcile.parity declares (key, columns, tolerances, allowance, uncertainty) come
from the dbt project. The change records tell a model's table; --table names another.

  0  every model equals its table
  1  differences are confirmed
  2  the command or the configuration is wrong
  3  something is not proven, nothing is confirmed; the reason stands beside the model
  4  rows are in flight, nothing is confirmed or not proven: try again later; or a fault that a retry may cure

--replay recomputes the model's checksums at the versions that a certificate names: 0 all are the same, 1 some are not,
3 some cannot be recomputed any more, with the reason.

Standard output has a line for each model, and then one line of JSON: state (equal, in flight, not proven or different),
models by state, position, certificate, seconds and bytes (of all values that came from the source).
"""
_LIST = re.compile(r"([^=]+)=(.+)")


def main(words: list[str], console: Console) -> None:
    """Prove, or replay a proof. Raises JobError unless every model is equal, or the same."""
    started = time.monotonic()
    options = _parser().parse_args(words)
    if options.secret is not None:
        raise UsageError(
            "User and password are not given on the command line, where every user of the machine sees them: give "
            "them in RECONCILE_JDBC_USER and RECONCILE_JDBC_PASSWORD, or in the file of --properties."
        )
    project = DbtProject(_options_of_dbt(options), console.err)
    if options.replay:
        _replay(options, project, console, started)
        return
    if not options.url or not options.models:
        raise UsageError("--url and --models are needed, or --replay; see `prove.py --help`.")
    if options.url.startswith("jdbc:cloudspanner:") or options.url.startswith("spanner"):
        raise UsageError("Spanner has no JDBC URL here: take a snapshot by `snapshot.py spanner`, and test parity.")
    database = database_of(options.url)
    tables = _tables(options.table)
    properties = secret_properties(options.properties)
    check_properties(database, options.url, properties, options.allow_property)
    source = Source(database, options.url, properties)
    certificate = Path(options.certificate) if options.certificate else None
    if certificate is not None and certificate.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--certificate {certificate} does not end in .html; the JSON beside it ends in .json.")
    asked = Asked(
        options.models,
        tables,
        options.allowance,
        waits=not options.no_wait,
        values=options.values,
        most=options.max_rows,
        timeout=options.statement_timeout,
    )
    spark = session.start("prove")
    proof = prove(spark, project, source, asked, console.say)
    width = max(len(result.plan.name) for result in proof.results)
    for result in proof.results:
        console.write(f"{result.line(width)}\n")
    if certificate is not None:
        text = text_of(document_of(proof, without_properties(source.url), _again(options)))
        written(certificate, html_of(text), text)
    if not options.no_record:
        record(project, proof)
    forget(spark, [result.plan for result in proof.results])
    _end(proof, certificate, console, started)


def _end(proof: Proof, certificate: Path | None, console: Console, started: float) -> None:
    states = [result.state for result in proof.results]
    summary = f"{len(states):,} model{'' if len(states) == 1 else 's'}, position {proof.position} at {proof.taken_at}"
    console.write(f"{f'{certificate}: ' if certificate else ''}{summary}, {_shouted(proof.state)}\n")
    for name, why in proof.not_compared.items():
        console.say(f"{name} is not compared: {why}")
    console.result(
        {
            "state": proof.state,
            "models": {state: states.count(state) for state in ("equal", "in flight", "not proven", "different")},
            "position": proof.position,
            "certificate": str(certificate) if certificate else None,
            "seconds": round(time.monotonic() - started, 1),
            "bytes": sum(result.bytes for result in proof.results),
        }
    )
    names = ", ".join(result.plan.name for result in proof.results if result.state == proof.state)
    if proof.state != "equal":
        raise _FAILURES[proof.state](f"{summary}, {proof.state}: {names}.")


def _shouted(state: str) -> str:
    return "NOT EQUAL" if state == "different" else state.upper()


_FAILURES: dict[str, type[JobError]] = {"different": DataError, "not proven": Undecided, "in flight": Fault}


def _replay(options: argparse.Namespace, project: DbtProject, console: Console, started: float) -> None:
    given = [name for name in ("url", "models", "certificate", "table", "allowance") if getattr(options, name)]
    if given:
        raise UsageError(f"--replay goes without --{given[0]}: it recomputes what the certificate names.")
    results = replayed(lambda: session.start("replay"), project, Path(options.replay))
    for result in results:
        console.write(f"{result.line}\n")
    states = [result.state for result in results]
    console.result(
        {
            "state": worst_of(states),
            "models": {state: states.count(state) for state in ("same", "different", "not recomputed")},
            "seconds": round(time.monotonic() - started, 1),
        }
    )
    if "different" in states:
        raise DataError("Some checksums are not those of the certificate; the lines above name the models.")
    if "not recomputed" in states:
        raise Undecided("Some checksums cannot be recomputed; the lines above say why.")


def _parser() -> Parser:
    parser = Parser(prog="prove.py", description=__doc__, epilog=_EPILOG)
    parser.add_argument("--url", help="of the source, for example jdbc:postgresql://host:5432/shop, without a password")
    parser.add_argument(
        "--models",
        "--select",
        nargs="+",
        default=[],
        metavar="MODEL",
        help="the models, as dbt selects them: orders customers, or tag:shop",
    )
    parser.add_argument("--certificate", metavar="FILE", help="where to write the proof: proof.html, and proof.json")
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="MODEL=SCHEMA.TABLE",
        help="the table of a model, quoted as in the database's SQL (default: the table of its change records)",
    )
    parser.add_argument("--values", action="store_true", help="also keep and show the values that differ")
    parser.add_argument(
        "--allowance",
        type=_duration,
        metavar="'10 minutes'",
        help="how late changes may be delivered (default: what the model's test of parity says, or 10 minutes)",
    )
    parser.add_argument(
        "--no-wait",
        action="store_true",
        help="do not wait until the allowance has passed if rows differ that may still be delivered",
    )
    parser.add_argument(
        "--max-rows",
        type=_positive,
        default=100_000,
        metavar="N",
        help="read at most so many rows of a model's table (default: 100000)",
    )
    parser.add_argument(
        "--statement-timeout",
        type=seconds_of,
        default=seconds_of("30m"),
        metavar="30m",
        help="the longest that a query of the source may take (default: 30m)",
    )
    parser.add_argument(
        "--no-record", action="store_true", help="do not write the results to the tables reconcile_parity"
    )
    parser.add_argument("--replay", metavar="FILE", help="recompute the model's side of a certificate, proof.json")
    parser.add_argument("--project-dir", metavar="DIR", help="the dbt project (default: this directory)")
    parser.add_argument("--profiles-dir", metavar="DIR", help="where dbt finds profiles.yml (default: as dbt has it)")
    parser.add_argument("--target", metavar="NAME", help="the target of the profile")
    parser.add_argument("--properties", metavar="FILE", help="a file of mode 600 with properties of the connection")
    parser.add_argument(
        "--allow-property",
        action="append",
        default=[],
        metavar="NAME",
        help="a driver property in --url or --properties to accept, although it is not known to be harmless",
    )
    # Only to be refused: see snapshot.py.
    parser.add_argument("--password", "--user", dest="secret", help=argparse.SUPPRESS)
    return parser


def _tables(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        match = _LIST.fullmatch(text)
        if not match:
            raise UsageError(f"--table {text} is not a model and its table; write it as orders=shop.orders.")
        if match[1] in found:
            raise UsageError(f"--table names {match[1]} twice; leave one out.")
        found[match[1]] = match[2]
    return found


def _duration(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,9} (second|minute|hour|day)s?", text):
        raise argparse.ArgumentTypeError(f"{text} is not a duration; write it as '10 minutes'")
    return text


def _positive(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text} is not a number of rows; write it as 100000")
    return int(text)


def _options_of_dbt(options: argparse.Namespace) -> list[str]:
    given = {"project-dir": options.project_dir, "profiles-dir": options.profiles_dir, "target": options.target}
    return [word for name, value in given.items() if value for word in (f"--{name}", value)]


def _again(options: argparse.Namespace) -> list[str]:
    """Return the words of the command, for the certificate; of the URL what is no property of the connection."""
    words = ["prove.py", "--url", without_properties(options.url), "--models", *options.models]
    for text in options.table:
        words += ["--table", text]
    return [*words, *(["--values"] if options.values else []), "--certificate", options.certificate]


def without_properties(url: str) -> str:
    """Return a URL without the properties of the connection that it may hold."""
    return re.split(r"[?;]", url, maxsplit=1)[0]


if __name__ == "__main__":
    console = Console("prove")
    sys.exit(console.exit_code(lambda: main(sys.argv[1:], console)))
