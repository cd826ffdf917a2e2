"""Memory and time of an append and a merge of a landing area that holds what is large.

A record of 200 MB, a line of 3 GB in a gzip file of 3 MB, a block of 2 GB in an Avro file of 2 MB, small files, and a
file of 2 GB. `append.py` and `dbt run` are the commands of docs/quickstart.md, in processes of their own, with the
memory of conf/spark-defaults.conf (4 GB for the driver). Memory is what all processes of a command
have resident together.

    python benchmarks/memory.py [--small-files 50000] [--gigabytes 2] [--directory DIR]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEBIBYTE = 2**20
MODEL = "orders"

EVENT = (
    '{"uuid":"%016d","read_timestamp":"2026-05-01T09:00:01.000Z","source_timestamp":"2026-05-01T09:00:00.000Z",'
    '"object":"SHOP_ORDERS","read_method":"oracle-cdc-logminer","stream_name":"projects/p/streams/s","schema_key":"k",'
    '"sort_keys":[],"source_metadata":{"schema":"SHOP","table":"ORDERS","database":"DB","row_id":"AAA%016d",'
    '"scn":%d,"is_deleted":false,"change_type":"INSERT","ssn":0,"rs_id":" 0x000001.00000001.0001","tx_id":"1",'
    '"log_file":"l"},"payload":{"ID":%d,"CUSTOMER_ID":7,"STATUS":"%s","TOTAL":12.50,'
    '"PLACED_AT":"2026-05-01T09:00:00.000Z","DUE_ON":"2026-05-02","UPDATED_AT":"2026-05-01T09:00:00.000Z","RATIO":0.5}}\n'
)


def event(number: int, status: str = "paid") -> bytes:
    """Return the line of an insert of the row with this key."""
    return (EVENT % (number, number, number, number, status)).encode()


def land(landing: Path, small_files: int, gigabytes: float) -> int:
    """Write the files, and return how many rows the table is to have."""
    landing.mkdir(parents=True)
    rows = 0
    directory = landing / "small"
    directory.mkdir()
    for _ in range(small_files):
        (directory / f"{rows}.jsonl").write_bytes(event(rows))
        rows += 1
    (landing / "record.jsonl").write_bytes(event(rows) + event(10**12, "x" * (200 * MEBIBYTE)) + event(rows + 1))
    rows += 2
    with gzip.open(landing / "bomb.jsonl.gz", "wb") as file:
        file.write(event(rows) + b'{"object":"SHOP_ORDERS","v":"')
        for _ in range(3 * 1024):
            file.write(b"a" * MEBIBYTE)
        file.write(b'"}\n' + event(rows + 1))
    rows += 2
    (landing / "bomb.avro").write_bytes(avro_bomb(2 * 1024))
    with (landing / "large.jsonl").open("wb") as file:
        while file.tell() < gigabytes * 2**30:
            file.write(b"".join(event(number) for number in range(rows, rows + 1000)))
            rows += 1000
    return rows


def avro_bomb(mebibytes: int) -> bytes:
    """Return a file of one block, with one record, whose text is so long."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = deflate.compress(_long(mebibytes * MEBIBYTE))
    for _ in range(mebibytes):
        packed += deflate.compress(b"a" * MEBIBYTE)
    packed += deflate.flush()
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "object", "type": "string"}]}).encode()
    sync = bytes(range(16))
    meta = b"".join(_long(len(part)) + part for part in (b"avro.codec", b"deflate", b"avro.schema", schema))
    return b"Obj\x01" + _long(2) + meta + b"\x00" + sync + _long(1) + _long(len(packed)) + packed + sync


def _long(number: int) -> bytes:
    number, written = number << 1, b""
    while number > 127:
        written += bytes([number & 127 | 128])
        number >>= 7
    return written + bytes([number])


class Peak:
    """The most memory that a process and those that it started have resident together, in bytes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.all = self.java = 0
        self._process = process
        self._watch = threading.Thread(target=self._look)
        self._watch.start()

    def _look(self) -> None:
        while self._process.poll() is None:
            found = list(_resident(self._process.pid))
            self.all = max(self.all, sum(size for _, size in found))
            self.java = max(self.java, sum(size for name, size in found if name == "java"))
            time.sleep(0.2)

    def end(self) -> None:
        """Wait until the process has ended."""
        self._watch.join()


def _resident(session: int) -> Iterator[tuple[str, int]]:
    """Yield name and memory of the processes of a session; pages that several share count once."""
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            if os.getsid(int(directory.name)) == session:
                said = (directory / "smaps_rollup").read_text()
                yield (directory / "comm").read_text().strip(), int(said.split("Pss:")[1].split()[0]) * 1024
        except (OSError, IndexError):  # it has ended
            continue


def run(name: str, words: list[str], directory: Path) -> str:
    """Run a command, print what it took, and return what it wrote."""
    began = time.monotonic()
    environment = {
        **os.environ,
        "SPARK_CONF_DIR": str(ROOT / "conf"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    process = subprocess.Popen(
        words, cwd=directory, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    peak = Peak(process)
    said, _ = process.communicate()
    peak.end()
    gib = 2**30
    print(
        f"| {name} | {time.monotonic() - began:.0f} s | {peak.all / gib:.2f} GiB, of which Java {peak.java / gib:.2f} "
        f"| {process.returncode} |",
        flush=True,
    )
    if process.returncode:
        print(said)
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small-files", type=int, default=50_000)
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--directory", help="where files and tables are written (default: a temporary one)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.directory) as name:
        directory = Path(name)
        rows = land(directory / "landing", asked.small_files, asked.gigabytes)
        print("| | time | peak | exit code |\n| --- | --- | --- | --- |")
        append = ["spark-submit", str(ROOT / "ingestion/append.py"), "datastream", "--path", "landing"]
        said = run("append", [*append, "--staging", "lake.shop_changes", "--skip-corrupt-files"], directory)
        dbt = ["dbt", "run", "--project-dir", str(ROOT), "--profiles-dir", str(ROOT), "--target-path", "target"]
        said += run("dbt run", [*dbt, "--log-path", "logs", "--select", MODEL], directory)
        print(
            "\n".join(
                line
                for line in said.splitlines()
                if "append" in line or line.startswith("{") or "built" in line.lower() or MODEL in line
            )
        )
        print(f"{rows:,} rows expected, and three records that are too long, in two files and one that cannot be read")
        query = (
            f"select 'rows', count(*) from demo.{MODEL} union all "
            f"select 'quarantined', count(*) from demo.{MODEL}__quarantine"
        )
        print(run("count", ["spark-sql", "-S", "-e", query], directory))


if __name__ == "__main__":
    main()
