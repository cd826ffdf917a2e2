"""Records a second from a change stream to staging, against the bare client decoding the same stream without Spark.

The server sends what it has encoded before: partitions of records with twelve columns, several records to a message.
The bare client is google-cloud-spanner's StreamedResultSet, one partition after the other in one process, every value
decoded, nothing kept. The job is `append.py spanner`'s, from a start to the end of the stream, in one window.

    python benchmarks/spanner.py [--records 200000] [--repeats 3] [--cores 1 2] [--postgresql]
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import stream_races
from fake_spanner import FakeSpanner
from google.cloud.spanner_v1 import types as T
from google.cloud.spanner_v1.streamed import StreamedResultSet
from reconcile_jobs.spanner.queries import Client, DatabaseName
from reconcile_jobs.spanner.windows import find_change_stream, list_partitions, read_partitions
from reconcile_jobs.timestamps import as_text
from stream_races import PARTITIONS, Race

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_PER_MESSAGE = 20
T0 = FakeSpanner.START

TYPES = {
    "id": "INT64",
    "customer_id": "INT64",
    "status": "STRING",
    "total": "NUMERIC",
    "placed_at": "TIMESTAMP",
    "due_on": "DATE",
    "updated_at": "TIMESTAMP",
    "ratio": "FLOAT64",
    "vip": "BOOL",
    "note": "STRING",
    "payload": "JSON",
    "digest": "BYTES",
}


class Canned(FakeSpanner):
    """Sends messages that were encoded beforehand."""

    def __init__(self, postgresql: bool, records: int) -> None:
        super().__init__(postgresql, PARTITIONS)
        # One window holds it all: a second one would be sent the same messages.
        self.now = T0 + 60 * 10**9 - 1
        self.messages: dict[str, list[bytes]] = {}
        columns = [
            {"name": name, "type": {"code": code}, "is_primary_key": name == "id", "ordinal_position": number}
            for number, (name, code) in enumerate(TYPES.items(), 1)
        ]
        for partition in self.partitions:
            made: list[bytes] = []
            message = T.PartialResultSet.pb()()
            message.metadata.CopyFrom(T.ResultSetMetadata.pb(T.ResultSetMetadata(row_type=self._row_type())))
            for number in range(records // PARTITIONS):
                record = self.commit(
                    partition, T0 + number, column_types=columns, mods=[_mod(number)], mod_type="UPDATE"
                )
                message.values.append(self._value({"data_change_record": record}))
                if len(message.values) == ROWS_PER_MESSAGE:
                    message.resume_token = b"%d" % number
                    made.append(message.SerializeToString())
                    message = T.PartialResultSet.pb()()
            made.append(message.SerializeToString())
            self.messages[partition] = made

    def _execute(self, request: Any, context: Any) -> Iterator[Any]:
        values = request._pb.params.fields
        token = values["p3" if self.postgresql else "token"].string_value if values else ""
        if token:
            yield from self.messages[token]
        else:
            yield from super()._execute(request, context)


def _mod(number: int) -> dict[str, Any]:
    values = {
        "customer_id": str(number % 1000),
        "status": f"status {number % 7}",
        "total": f"{number * 37}.25",
        "placed_at": "2026-05-01T09:00:00.123456Z",
        "due_on": "2026-05-02",
        "updated_at": "2026-05-01T09:00:00.123456Z",
        "ratio": number / 7,
        "vip": number % 2 == 0,
        "note": "n" * (number % 40),
        "payload": '{"a":[1,2,3],"b":"x"}',
        "digest": "AP8AAP8AAP8A",
    }
    return {"keys": {"id": str(number)}, "new_values": values, "old_values": values}


class SpannerRace(Race):
    """Against google-cloud-spanner's StreamedResultSet."""

    def server(self) -> FakeSpanner:
        return Canned(self.options.postgresql, self.options.records)

    def bare_client(self, address: str) -> int:
        count = 0
        with Client(DatabaseName("p", "i", "d", address)) as client:
            stream = find_change_stream(client, "everything")
            for token, start in list_partitions(client, stream, T0, T0 + 10**9).tokens.items():
                request = stream.query(client.session, start, as_text(T0 + 10**9), token)
                call = client.open("ExecuteStreamingSql", request, 60)
                count += sum(1 for _ in StreamedResultSet(T.PartialResultSet.wrap(m) for m in call.messages()))
        return count

    def our_reader(self, address: str) -> int:
        with Client(DatabaseName("p", "i", "d", address)) as client:
            stream = find_change_stream(client, "everything")
            tokens = list(list_partitions(client, stream, T0, T0 + 10**9).tokens.items())
            return sum(type(found) is tuple for found in read_partitions(client, stream, tokens, T0 + 10**9))

    def job(self, spark: SparkSession, address: str, number: int) -> int:
        from reconcile_jobs.spanner.job import Job, run
        from reconcile_jobs.staging import TableName

        os.environ["SPANNER_EMULATOR_HOST"] = address
        table = TableName.parse(f"bench.t{number}")
        return run(spark, Job("p", "i", "d", "everything", table, start=as_text(T0))).records


if __name__ == "__main__":
    asked = stream_races.parser(__doc__, 200_000)
    asked.add_argument("--postgresql", action="store_true", help="the dialect")
    stream_races.run(SpannerRace(asked.parse_args()))
