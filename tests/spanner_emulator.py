"""Google's Spanner emulator, where it is installed: databases of both dialects, and a workload over three tables."""

import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core.exceptions import FailedPrecondition
from google.api_core.retry import Retry, if_exception_type
from google.cloud.spanner_admin_database_v1 import CreateDatabaseRequest, DatabaseAdminClient, UpdateDatabaseDdlRequest
from google.cloud.spanner_admin_database_v1.services.database_admin.transports import DatabaseAdminGrpcTransport
from google.cloud.spanner_admin_instance_v1 import CreateInstanceRequest, Instance, InstanceAdminClient
from google.cloud.spanner_admin_instance_v1.services.instance_admin.transports import InstanceAdminGrpcTransport
from google.cloud.spanner_v1 import types as T
from google.protobuf.struct_pb2 import ListValue, Value
from reconcile_jobs.spanner.queries import Client, DatabaseName

PROJECT, INSTANCE = "test-project", "test-instance"


def emulator_binary() -> str | None:
    """Return the emulator's path: on PATH, or among the components of an installed Google Cloud CLI."""
    roots = [os.environ.get("CLOUDSDK_ROOT_DIR")]
    if gcloud := shutil.which("gcloud"):
        roots.append(str(Path(gcloud).resolve().parents[1]))
    roots += ["/usr/lib/google-cloud-sdk", str(Path.home() / "google-cloud-sdk")]
    found = [Path(root) / "bin" / "cloud_spanner_emulator" / "emulator_main" for root in roots if root]
    return shutil.which("emulator_main") or next((str(path) for path in found if path.exists()), None)


class Emulator:
    """The emulator's process; partitions live for a few seconds only, then split, merge or move."""

    def __init__(self, partition_seconds: int = 3) -> None:
        binary = emulator_binary()
        if binary is None:
            if os.environ.get("CI"):
                pytest.fail("CI has no Spanner emulator: install the component cloud-spanner-emulator")
            pytest.skip("the Spanner emulator is not installed")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._process = subprocess.Popen(
            [
                binary,
                "--host_port",
                self.address,
                f"--override_change_stream_partition_token_alive_seconds={partition_seconds}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        channel = grpc.insecure_channel(self.address)
        grpc.channel_ready_future(channel).result(30)
        instances = InstanceAdminClient(transport=InstanceAdminGrpcTransport(channel=channel))
        self._databases = DatabaseAdminClient(transport=DatabaseAdminGrpcTransport(channel=channel))
        config = f"projects/{PROJECT}/instanceConfigs/emulator-config"
        instances.create_instance(
            CreateInstanceRequest(
                parent=f"projects/{PROJECT}",
                instance_id=INSTANCE,
                instance=Instance(config=config, display_name="test", node_count=1),
            )
        ).result(30)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def database(self, name: str, postgresql: bool, *ddl: str) -> "Database":
        parent = f"projects/{PROJECT}/instances/{INSTANCE}"
        if postgresql:
            create = CreateDatabaseRequest(
                parent=parent, create_statement=f'CREATE DATABASE "{name}"', database_dialect="POSTGRESQL"
            )
            self._databases.create_database(create).result(30)
            update = UpdateDatabaseDdlRequest(database=f"{parent}/databases/{name}", statements=list(ddl))
            self._databases.update_database_ddl(update).result(30)
        else:
            create = CreateDatabaseRequest(
                parent=parent, create_statement=f"CREATE DATABASE `{name}`", extra_statements=list(ddl)
            )
            self._databases.create_database(create).result(30)
        return Database(DatabaseName(PROJECT, INSTANCE, name, self.address), postgresql, self._databases)


class Database:
    """A database to write to and to read from, over the bare methods."""

    def __init__(self, name: DatabaseName, postgresql: bool, admin: DatabaseAdminClient) -> None:
        self.name, self.postgresql, self._admin = name, postgresql, admin
        self.client = Client(name)

    def commit(self, *mutations: T.Mutation) -> str:
        """Commit mutations as one transaction, and return its commit timestamp."""
        request = T.CommitRequest.pb(
            T.CommitRequest(
                session=self.client.session,
                mutations=list(mutations),
                single_use_transaction=T.TransactionOptions(read_write=T.TransactionOptions.ReadWrite()),
            )
        )
        moment = self.client.unary("Commit", request, T.CommitResponse).commit_timestamp
        # As change records have it: no zeros at the end of a fraction.
        text = moment.ToJsonString()
        return text.rstrip("Z").rstrip("0").rstrip(".") + "Z" if "." in text else text

    def capture(self, kind: str, stream: str = "everything") -> None:
        """Let the stream capture values in another way from now on."""
        options = "" if self.postgresql else "OPTIONS "
        statement = f"ALTER CHANGE STREAM {stream} SET {options}(value_capture_type = '{kind}')"
        request = UpdateDatabaseDdlRequest(database=self.name.path, statements=[statement])
        # The emulator refuses to change a schema while a transaction is going on, which a workload sees to.
        refused = Retry(if_exception_type(FailedPrecondition), initial=0.05, maximum=0.2, timeout=60)
        refused(self._admin.update_database_ddl)(request).result(30)

    def rows(self, table: str, columns: list[str]) -> list[list[Any]]:
        """Return all rows of a table by a strong read, values as Spanner's JSON has them."""
        quoted = ", ".join(f'"{name}"' if self.postgresql else f"`{name}`" for name in columns)
        table = f'"{table}"' if self.postgresql else table
        return [[plain(value) for value in row] for row in self.client.rows(f"SELECT {quoted} FROM {table}")]


def plain(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        return [plain(item) for item in value.list_value.values]
    return None if kind == "null_value" else getattr(value, kind)


def json_value(python: Any) -> Value:
    if python is None:
        return Value(null_value=0)
    if isinstance(python, bool):
        return Value(bool_value=python)
    if isinstance(python, float):
        return Value(number_value=python)
    if isinstance(python, list):
        return Value(list_value=ListValue(values=[json_value(item) for item in python]))
    return Value(string_value=str(python))


def write(kind: str, table: str, values: dict[str, Any]) -> T.Mutation:
    """Return an insert or update."""
    rows = [ListValue(values=[json_value(value) for value in values.values()])]
    return T.Mutation(**{kind: T.Mutation.Write(table=table, columns=list(values), values=rows)})


def delete(table: str, *key: Any) -> T.Mutation:
    keys = [ListValue(values=[json_value(part) for part in key])]
    return T.Mutation(delete=T.Mutation.Delete(table=table, key_set=T.KeySet(keys=keys)))


# Every type of a column, in GoogleSQL and in PostgreSQL, and values. The emulator cuts fractions of seconds in change
# records, makes NaN NULL there, and dies of a NULL in an array: the in-process server has those.
EVERY_TYPE: dict[str, tuple[str, str, list[Any]]] = {
    "c_bool": ("BOOL", "boolean", [True, False, None]),
    "c_int64": ("INT64", "bigint", ["9223372036854775807", "-9223372036854775808", "0", None]),
    "c_float64": ("FLOAT64", "double precision", [1.5, -1e300, 0.1, None]),
    "c_float32": ("FLOAT32", "real", [0.5, -2.25, None]),
    "c_numeric": ("NUMERIC", "numeric", ["12345678901234567890123456789.123456789", "-0.5", None]),
    "c_string": ("STRING(MAX)", "varchar", ['a"\\é\n<&>表😀', "", "NULL", None]),
    "c_bytes": ("BYTES(MAX)", "bytea", ["AP8=", "", None]),
    "c_date": ("DATE", "date", ["2026-02-03", "0001-01-01", None]),
    "c_timestamp": ("TIMESTAMP", "timestamptz", ["2026-02-03T04:05:06Z", None]),
    "c_json": ("JSON", "jsonb", ['{"a":[1,null],"b":1.1}', "[]", None]),
    "a_bool": ("ARRAY<BOOL>", "boolean[]", [[True, False], []]),
    "a_int64": ("ARRAY<INT64>", "bigint[]", [["1", "9223372036854775807"], []]),
    "a_float64": ("ARRAY<FLOAT64>", "double precision[]", [[1.5, 0.1], []]),
    "a_float32": ("ARRAY<FLOAT32>", "real[]", [[0.5], []]),
    "a_numeric": ("ARRAY<NUMERIC>", "numeric[]", [["0.5", "123456789.5"], []]),
    "a_string": ("ARRAY<STRING(MAX)>", "varchar[]", [["x", "", "NULL"], []]),
    "a_bytes": ("ARRAY<BYTES(MAX)>", "bytea[]", [["AP8="], []]),
    "a_date": ("ARRAY<DATE>", "date[]", [["2026-02-03"], []]),
    "a_timestamp": ("ARRAY<TIMESTAMP>", "timestamptz[]", [["2026-02-03T04:05:06Z"], []]),
    "a_json": ("ARRAY<JSON>", "jsonb[]", [['{"a":1}'], []]),
}

TABLES: dict[str, tuple[list[str], list[str]]] = {
    "Orders": (["OrderId"], ["Total", "Note"]),
    "OrderLines": (["OrderId", "LineNo"], ["Amount"]),
    "AllTypes": (["Id"], list(EVERY_TYPE)),
}


def ddl(postgresql: bool, stream: str = "everything", capture: str = "OLD_AND_NEW_VALUES") -> list[str]:
    """Return three tables, one of them interleaved, with names in upper and lower case, and a stream of all."""
    if postgresql:
        types = ", ".join(f"{name} {kind}" for name, (_, kind, _) in EVERY_TYPE.items())
        return [
            'CREATE TABLE "Orders" ("OrderId" bigint PRIMARY KEY, "Total" bigint, "Note" varchar)',
            'CREATE TABLE "OrderLines" ("OrderId" bigint, "LineNo" bigint, "Amount" bigint, '
            'PRIMARY KEY ("OrderId", "LineNo")) INTERLEAVE IN PARENT "Orders"',
            f'CREATE TABLE "AllTypes" ("Id" varchar PRIMARY KEY, {types})',
            f"CREATE CHANGE STREAM {stream} FOR ALL WITH (value_capture_type = '{capture}')",
        ]
    types = ", ".join(f"{name} {kind}" for name, (kind, _, _) in EVERY_TYPE.items())
    return [
        "CREATE TABLE Orders (OrderId INT64 NOT NULL, Total INT64, Note STRING(MAX)) PRIMARY KEY (OrderId)",
        "CREATE TABLE OrderLines (OrderId INT64 NOT NULL, LineNo INT64 NOT NULL, Amount INT64) "
        "PRIMARY KEY (OrderId, LineNo), INTERLEAVE IN PARENT Orders",
        f"CREATE TABLE AllTypes (Id STRING(36) NOT NULL, {types}) PRIMARY KEY (Id)",
        f"CREATE CHANGE STREAM {stream} FOR ALL OPTIONS (value_capture_type = '{capture}')",
    ]


Event = tuple[str, str, tuple[str, ...], str]  # commit timestamp, table, key, INSERT, UPDATE or DELETE


class Workload:
    """Transactions at random over few keys; `events` holds what was committed, `state` what the tables then hold."""

    def __init__(self, database: Database, seed: int, keys: int = 12) -> None:
        self.database, self._random, self._keys = database, random.Random(seed), keys
        self.state: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {table: {} for table in TABLES}
        self.events: Counter[Event] = Counter()
        self.transactions = 0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.failure: BaseException | None = None

    def start(self, pause: float = 0.0) -> None:
        def work() -> None:
            try:
                while not self._stop.is_set():
                    self.step()
                    time.sleep(pause)
            except BaseException as problem:
                self.failure = problem

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(60)
        if self.failure:
            raise self.failure

    def step(self) -> None:
        """Commit one transaction: an order with its lines, a line and its order's total, or a row of every type."""
        changes: dict[tuple[str, tuple[str, ...]], tuple[str, dict[str, Any]]] = {}
        for act in self._random.sample([self._order, self._everything], self._random.choice([1, 1, 2])):
            act(changes)
        mutations = []
        # Lines are deleted before their order, and inserted after it.
        for (table, key), (kind, values) in sorted(changes.items(), key=lambda c: (c[1][0] != "DELETE", c[0][0])):
            named = dict(zip(TABLES[table][0], key, strict=True))
            if kind == "DELETE":
                continue
            mutations.append(write(kind.lower(), table, named | values))
        deletes = sorted((c for c in changes.items() if c[1][0] == "DELETE"), key=lambda c: c[0][0])
        mutations = [delete(table, *key) for (table, key), _ in deletes] + sorted(
            mutations, key=lambda m: m.insert.table == "OrderLines" or m.update.table == "OrderLines"
        )
        moment = self.database.commit(*mutations)
        self.transactions += 1
        for (table, key), (kind, values) in changes.items():
            rows = self.state[table]
            if kind == "DELETE":
                del rows[key]
            else:
                before = dict.fromkeys(TABLES[table][1]) if kind == "INSERT" else rows[key]
                rows[key] = before | values
            self.events[moment, table, key, kind] += 1

    def _order(self, changes: dict[Any, Any]) -> None:
        number = str(self._random.randrange(self._keys))
        orders, lines = self.state["Orders"], self.state["OrderLines"]
        mine = [key for key in lines if key[0] == number]
        if (number,) not in orders:
            amounts = [self._random.randrange(100) for _ in range(self._random.randrange(1, 4))]
            changes["Orders", (number,)] = ("INSERT", {"Total": str(sum(amounts)), "Note": f"n{self.transactions}"})
            for line, amount in enumerate(amounts):
                changes["OrderLines", (number, str(line))] = ("INSERT", {"Amount": str(amount)})
            return
        what = self._random.random()
        if what < 0.2:
            for key in mine:
                changes["OrderLines", key] = ("DELETE", {})
            changes["Orders", (number,)] = ("DELETE", {})
        elif what < 0.4:
            changes["Orders", (number,)] = ("UPDATE", {"Note": self._random.choice([None, f"n{self.transactions}"])})
        else:
            key = (number, str(self._random.randrange(4)))
            old = int(lines[key]["Amount"]) if key in lines else 0
            amount = self._random.randrange(100)
            kind = "INSERT" if key not in lines else self._random.choice(["UPDATE", "DELETE"])
            amount = 0 if kind == "DELETE" else amount
            changes["OrderLines", key] = (kind, {} if kind == "DELETE" else {"Amount": str(amount)})
            total = int(orders[number,]["Total"]) - old + amount
            changes["Orders", (number,)] = ("UPDATE", {"Total": str(total)})

    def _everything(self, changes: dict[Any, Any]) -> None:
        key = (f"k{self._random.randrange(self._keys)}",)
        there = key in self.state["AllTypes"]
        if there and self._random.random() < 0.2:
            changes["AllTypes", key] = ("DELETE", {})
            return
        columns = list(EVERY_TYPE) if not there else self._random.sample(list(EVERY_TYPE), self._random.randrange(1, 5))
        values = {name: self._random.choice(EVERY_TYPE[name][2]) for name in columns}
        if self.database.postgresql and values.get("c_json"):
            values["c_json"] = json.dumps(json.loads(values["c_json"]))  # jsonb writes spaces
        if self.database.postgresql and values.get("a_json"):
            values["a_json"] = [json.dumps(json.loads(text)) for text in values["a_json"]]
        changes["AllTypes", key] = ("UPDATE" if there else "INSERT", values)


def events_of(records: list[str]) -> Counter[Event]:
    """Return what data change records say was committed."""
    found: Counter[Event] = Counter()
    for text in records:
        record = json.loads(text)
        for mod in record["mods"]:
            key = tuple(mod["keys"][name] for name in TABLES[record["table_name"]][0])
            found[record["commit_timestamp"], record["table_name"], key, record["mod_type"]] += 1
    return found


def folded(records: list[str]) -> dict[str, dict[tuple[str, ...], dict[str, Any]]]:
    """Return what the tables hold after these records, backfill and changes, applied in order of commit."""
    state: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {table: {} for table in TABLES}
    parsed = [json.loads(text) for text in records]

    def order(record: dict[str, Any]) -> Any:
        moment = record["commit_timestamp"][:-1]
        padded = (moment if "." in moment else moment + ".").ljust(29, "0")
        return padded, not record.get("backfill"), record["record_sequence"]

    for record in sorted(parsed, key=order):
        keys, columns = TABLES[record["table_name"]]
        rows = state[record["table_name"]]
        for mod in record["mods"]:
            key = tuple(mod["keys"][name] for name in keys)
            if record["mod_type"] == "DELETE":
                rows.pop(key, None)
            elif record["mod_type"] == "INSERT":
                rows[key] = dict.fromkeys(columns) | mod["new_values"]
            else:
                rows[key] = rows[key] | mod["new_values"]
    return state


def in_database(database: Database) -> dict[str, dict[tuple[str, ...], dict[str, Any]]]:
    """Return what a strong read of the three tables gives."""
    state = {}
    for table, (keys, columns) in TABLES.items():
        rows = database.rows(table, keys + columns)
        state[table] = {tuple(row[: len(keys)]): dict(zip(columns, row[len(keys) :], strict=True)) for row in rows}
    return state
