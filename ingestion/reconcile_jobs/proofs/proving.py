"""A proof: models beside their tables at one position of the source, by checksums, and rows only where these differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

from reconcile_jobs.jdbc.connection import Source
from reconcile_jobs.jdbc.database import Cut, Table
from reconcile_jobs.process import session
from reconcile_jobs.process.clock import Clock
from reconcile_jobs.process.errors import Fault, JobError, Undecided, UsageError, in_sentences
from reconcile_jobs.proofs.comparison import FIRST, Comparison, compared
from reconcile_jobs.proofs.comparison import Table as SideInSQL
from reconcile_jobs.proofs.dialects import Spark
from reconcile_jobs.proofs.plans import Plan, plan_of
from reconcile_jobs.proofs.source_side import Held, dialect_of, held, table_of_object
from reconcile_jobs.proofs.verdicts import Difference, Proven, worst
from reconcile_jobs.snapshots.snapshot_jdbc import typed_rows
from reconcile_jobs.staging import quoted
from reconcile_jobs.timestamps import asked_moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Asked", "Project", "Proof", "Requests", "forget", "model_side", "prove", "record"]

# Seconds after which an allowance has surely passed, which the tables' own clock measures.
_SURELY = 1.0


class Project(Protocol):
    """A dbt project: see project_side.py."""

    def models(self, selected: Sequence[str]) -> list[str]:
        """Return the unique ids of the models that are selected."""

    def ask(self, question: str, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the answers of the macro `answer_proof`."""


@dataclass(frozen=True)
class Asked:
    """What a user asks for. `tables`: by the name of a model its table, where the change records do not tell it."""

    models: Sequence[str]
    tables: Mapping[str, str] = field(default_factory=dict)
    allowance: str | None = None
    waits: bool = True
    values: bool = False
    most: int = 100_000
    timeout: int = 1800


@dataclass(frozen=True)
class Requests:
    """What the macros are asked, at one position."""

    kind: str
    cut: Cut
    asked: Asked

    def of(self, result: Proven, **more: Any) -> dict[str, Any]:
        """Return a request about a model."""
        plan = result.plan
        return {
            "unique_id": plan.id,
            "key": plan.model["key"],
            "columns": plan.compared,
            "tolerances": plan.tolerances,
            "allowance": self.allowance(result),
            "uncertainty": plan.model["uncertainty"],
            "position": {"kind": self.kind, "value": self.cut.position, "taken_at": self.cut.properties["taken_at"]},
            "compared_to": result.compared_to,
            "source_rows": plan.view("rows"),
            "store_values": self.asked.values,
            **more,
        }

    def allowance(self, result: Proven) -> str:
        """Return how late changes may be delivered, as SQL has a length of time."""
        return str(self.asked.allowance or result.plan.model["allowance"])

    def passes_at(self, result: Proven) -> datetime:
        """Return when the allowance has passed since the position."""
        number, unit = self.allowance(result).split()
        length = timedelta(**{unit.rstrip("s") + "s": int(number)})
        taken_at = asked_moment("taken_at", self.cut.properties["taken_at"])
        return datetime.fromtimestamp(taken_at / 1e9, UTC) + length


@dataclass
class Proof:
    """The results of all models at one position, and why the other models that were selected are not compared."""

    database: str
    requests: Requests
    began: datetime
    results: list[Proven]
    not_compared: dict[str, str]

    @property
    def state(self) -> str:
        """The worst state of a model."""
        return worst([result.state for result in self.results])

    @property
    def position(self) -> str:
        """The position, as people know it."""
        return f"{self.requests.kind} {self.requests.cut.position}"

    @property
    def taken_at(self) -> str:
        """The time of the position in UTC, to the second."""
        return self.requests.cut.properties["taken_at"][:19].replace("T", " ") + " UTC"


def prove(
    spark: SparkSession,
    project: Project,
    source: Source,
    asked: Asked,
    say: Callable[[str], None],
    clock: Clock | None = None,
    stop: Event | None = None,
) -> Proof:
    """Compare models with their tables. Raises JobErrors where that cannot begin; else each result says what it is."""
    clock = clock or Clock()
    began = datetime.fromtimestamp(clock.now() / 1e9, UTC)
    models = project.ask("models", [{"unique_id": id_} for id_ in project.models(asked.models)])
    not_compared = {model["name"]: "; ".join(model["complaints"]) for model in models if model["complaints"]}
    models = [model for model in models if not model["complaints"]]
    if unknown := sorted({*asked.tables} - {model["name"] for model in models}):
        raise UsageError(f"--table names {', '.join(unknown)}, which is no model that is compared.")
    if not models:
        raise UsageError(
            "No selected model can be compared: "
            + "; ".join(f"{name}: {why}" for name, why in not_compared.items())
            + "."
        )
    tables = [_table(source, model, asked.tables.get(model["name"])) for model in models]
    with session.settings(spark, {"spark.sql.session.timeZone": "UTC"}), in_sentences():
        with held(spark, source, tables, asked.timeout) as at_source:
            dialect = dialect_of(source.database)
            shown = [f"{table.schema}.{table.name}" for table in tables]
            plans = [
                plan_of(model, table, at_source.columns[table], dialect, name)
                for model, table, name in zip(models, tables, shown, strict=True)
            ]
            proven = [Proven(plan, f"{source.database.name} {name}") for plan, name in zip(plans, shown, strict=True)]
            requests = Requests(source.database.kind_of_position, at_source.cut, asked)
            for result in proven:
                result.reasons += result.plan.complaints
            _ask_rows(project, requests, [result for result in proven if not result.reasons])
            for result in proven:
                if not result.reasons:
                    say(f"{result.plan.name} is being compared")
                    _compare(spark, at_source, result, asked.most, clock)
        differing = [result for result in proven if result.found and result.found.keys and not result.reasons]
        _give_verdicts(spark, project, requests, differing, clock)
        if asked.waits:
            _wait(spark, project, requests, differing, say, clock, stop or Event())
        for result in proven:
            result.add_reasons()
    return Proof(source.database.name, requests, began, proven, not_compared)


def record(project: Project, proof: Proof) -> None:
    """Write the results to the tables of parity, where status.py and parity.py find them."""
    asked = [
        proof.requests.of(
            result,
            versions=result.sides["versions"],
            delivered=result.sides["delivered"],
            counts=_with_reasons(result),
            verdict=result.verdict,
            reasons=result.reasons,
            seconds=result.seconds,
            has_differences=bool(result.differences),
        )
        for result in proof.results
        if result.sides
    ]
    if asked:
        project.ask("records", asked)


def _with_reasons(result: Proven) -> dict[str, Any]:
    """Return the counts; why nothing is proven counts as one row, as columns that parity cannot compare do."""
    counts = result.totals()
    more = 1 if result.reasons else 0
    return {**counts, "compared": counts["compared"] + more, "unprovable": counts["unprovable"] + more}


def forget(spark: SparkSession, plans: Iterable[Plan]) -> None:
    """Drop the job's views, of which a session may have many proofs."""
    for plan in plans:
        for kind in ("rows", "forms", "keys"):
            spark.catalog.dropGlobalTempView(plan.view(kind))


def _table(source: Source, model: Mapping[str, Any], named: str | None) -> Table:
    if named is not None:
        return source.database.table(named)
    if len(model["objects"]) != 1:
        read = ", ".join(model["objects"]) or "no object"
        raise UsageError(
            f"{model['name']} reads {read}, so its table is not known: name it, as in --table "
            f"{model['name']}=SCHEMA.TABLE, or select other models."
        )
    return table_of_object(model["objects"][0])


def _ask_rows(project: Project, requests: Requests, results: Sequence[Proven]) -> None:
    """Ask for the models' rows at the position. One model that fails does not keep the others from being compared."""
    for result, answer in _answers(project, "rows", [(result, requests.of(result)) for result in results]):
        if isinstance(answer, JobError):
            result.reasons.append(str(answer))
        elif answer["complaints"]:
            result.reasons += answer["complaints"]
        else:
            result.sides |= answer


def _answers(
    project: Project, question: str, asked: Sequence[tuple[Proven, dict[str, Any]]]
) -> Iterable[tuple[Proven, dict[str, Any] | JobError]]:
    if not asked:
        return []
    results = [result for result, _ in asked]
    try:
        return list(zip(results, project.ask(question, [request for _, request in asked]), strict=True))
    except JobError as problem:
        if len(asked) == 1:
            return [(results[0], problem)]
        # Which of them it was, they say when they are asked one by one.
        return [answer for one in asked for answer in _answers(project, question, [one])]


def _compare(spark: SparkSession, at_source: Held, result: Proven, most: int, clock: Clock) -> None:
    """Compare the sums, and keep the source's rows of the buckets that differ as a view of the session."""
    began, bytes_before = clock.seconds(), at_source.bytes
    plan, dialect = result.plan, dialect_of(at_source.database)
    theirs, ours = [pair[0] for pair in plan.pairs], [pair[1] for pair in plan.pairs]
    values = [
        (target.source.expression or "{}").replace("{}", dialect.quoted(target.source.name)) for target in plan.targets
    ]

    def asked(query: str) -> Sequence[Sequence[Any]]:
        return at_source.values(query, plan.bytes_at if query.startswith("SELECT key_text") else ())

    relation = at_source.relation(plan.table)
    source = SideInSQL(dialect, relation, theirs[: plan.key_length], theirs, asked, values)
    model = model_side(spark, result.sides["sql"], ours, plan.key_length)
    result.sql = (
        dialect.buckets(relation, source.key, source.fields, FIRST),
        model.dialect.buckets(model.relation, model.key, model.fields, FIRST),
    )
    try:
        result.found = compared(source, model, most)
    except Undecided as problem:  # the source no longer has the position
        result.reasons.append(str(problem))
    if result.found and result.found.keys:
        if why := plan.inexact(result.found.source_rows):
            result.reasons.append(why)
        else:
            _keep_rows(spark, plan, result.found)
            _keep_keys(spark, plan, result.found, result.sides, ours)
    result.bytes = at_source.bytes - bytes_before
    result.seconds = clock.seconds() - began


def model_side(spark: SparkSession, rows: str, fields: Sequence[Any], key_length: int) -> SideInSQL:
    """Return the model's rows, given as a SELECT, as a side that is asked in SQL."""
    return SideInSQL(
        Spark(), f"(\n{rows}\n) model_rows", fields[:key_length], fields, lambda query: spark.sql(query).collect()
    )


def _keep_rows(spark: SparkSession, plan: Plan, found: Comparison) -> None:
    """Keep the rows that came, with the model's names and types, for the comparison of rows."""
    session.ship_by_value()
    targets = list(plan.targets)
    delivered = ", ".join(f"c{place} {'STRING' if target.text else 'BINARY'}" for place, target in enumerate(targets))
    typed = ", ".join(f"{quoted(target.name)} {target.stored_type}" for target in targets)
    texts = [
        tuple(bytes(value) if isinstance(value, bytes | bytearray) else value for value in row.values)
        for row in found.source_rows
    ]
    rows = spark.createDataFrame(texts, delivered).mapInArrow(lambda batches: typed_rows(batches, targets), typed)
    rows.localCheckpoint().createOrReplaceGlobalTempView(plan.view("rows"))


def _keep_keys(
    spark: SparkSession, plan: Plan, found: Comparison, sides: Mapping[str, Any], ours: Sequence[Any]
) -> None:
    """Keep the keys of the rows that differ, in the words of the verdicts."""
    forms = plan.view("forms")
    spark.createDataFrame([(key,) for key in sorted(found.keys)], "form string").createOrReplaceGlobalTempView(forms)
    key = Spark().row(ours[: plan.key_length])
    parts = [
        f"SELECT {sides['key_text']} AS key FROM {rows} WHERE {key} IN (SELECT form FROM global_temp.{quoted(forms)})"
        for rows in (f"global_temp.{quoted(plan.view('rows'))}", f"(\n{sides['sql']}\n) model_rows")
    ]
    keys = spark.sql(" UNION ".join(parts)).collect()
    spark.createDataFrame([tuple(row) for row in keys], "key string").createOrReplaceGlobalTempView(plan.view("keys"))


def _give_verdicts(
    spark: SparkSession, project: Project, requests: Requests, results: Sequence[Proven], clock: Clock
) -> None:
    """Let the SELECT of the test parity give a verdict to each row that differs."""
    began = clock.seconds()
    asked = [
        (
            result,
            requests.of(
                result,
                differing_keys=result.plan.view("keys"),
                **{name: result.sides[name] for name in ("versions", "staged", "delivered")},
            ),
        )
        for result in results
    ]
    for result, answer in _answers(project, "verdicts", asked):
        if isinstance(answer, JobError):
            result.reasons.append(str(answer))
            continue
        result.counts = answer["counts"]
        result.differences = [
            _difference(row, requests.asked.values)
            for row in spark.table(answer["verdicts"]).where("verdict <> 'match'").orderBy("key").collect()
        ]
        result.seconds += (clock.seconds() - began) / len(results)


def _difference(row: Any, with_values: bool) -> Difference:
    columns = [
        {"column": of.column, **({"model": of.model, "source": of.source} if with_values else {})}
        for of in row.columns or ()
    ]
    return Difference(row.key, row.verdict, row.difference, row.reason, columns)


def _wait(
    spark: SparkSession,
    project: Project,
    requests: Requests,
    differing: Sequence[Proven],
    say: Callable[[str], None],
    clock: Clock,
    stop: Event,
) -> None:
    """Decide rows in flight when the allowance has passed: the source's rows stay those of the position."""
    undecided = [
        result
        for result in differing
        if result.counts.get("in_flight") and not result.sides["delivered"]["is_complete"]
    ]
    if not undecided or requests.kind == "read_timestamp":
        return
    until = max(requests.passes_at(result) for result in undecided)
    pause = max(0.0, until.timestamp() - clock.now() / 1e9) + _SURELY
    rows = sum(result.counts["in_flight"] for result in undecided)
    say(
        f"{rows:,} rows differ, and changes from before the position may still be delivered: waiting until "
        f"{until:%H:%M:%S} UTC, when the allowance has passed. --no-wait ends at once"
    )
    clock.wait(stop, pause)
    if stop.is_set():
        raise Fault("Stopped before rows in flight were decided: run the same command again.")
    before = {id(result): result.sides for result in undecided}
    for result in undecided:
        result.sides = {}
    _ask_rows(project, requests, undecided)
    for result in undecided:
        # Of the ledger and the quarantine counts what is there now; the version is the one whose rows have verdicts.
        result.sides = before[id(result)] | result.sides
    _give_verdicts(spark, project, requests, [result for result in undecided if not result.reasons], clock)
