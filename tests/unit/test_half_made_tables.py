"""What a job left of a Delta table that was killed while it made it: gone on with if there are no rows, else kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reconcile_jobs.table_formats import Delta, Iceberg

FIRST, SECOND = (f"_delta_log/{number:020}.json" for number in range(2))


class HadoopPath:
    """A path of Hadoop's, of local files."""

    def __init__(self, *parts: str) -> None:
        self.place = Path(*parts)

    def getFileSystem(self, configuration: object) -> Any:
        return SimpleNamespace(listStatus=self._listed, delete=self._deleted)

    def getName(self) -> str:
        return self.place.name

    def toString(self) -> str:
        return str(self.place)

    @staticmethod
    def _listed(path: HadoopPath) -> list[Any]:
        entries = [(HadoopPath(str(entry)), entry.is_dir()) for entry in path.place.iterdir()]
        return [SimpleNamespace(getPath=lambda at=at: at, isDirectory=lambda d=d: d) for at, d in entries]

    @staticmethod
    def _deleted(path: HadoopPath, recursive: bool) -> bool:
        assert not recursive, "what comes meanwhile would go too"
        (path.place.rmdir if path.place.is_dir() else path.place.unlink)()
        return True


class Lake:
    """A session whose table `lake.changes` lies at a place, and what of it the catalog is given."""

    def __init__(self, place: Path) -> None:
        self.place, self.made = place, list[tuple[str, str]]()
        option = SimpleNamespace(apply=lambda value: value)
        catalyst = SimpleNamespace(TableIdentifier=lambda name, schema: (schema, name))
        hadoop = SimpleNamespace(fs=SimpleNamespace(Path=HadoopPath))
        apache = SimpleNamespace(hadoop=hadoop, spark=SimpleNamespace(sql=SimpleNamespace(catalyst=catalyst)))
        places = {("lake", "changes"): HadoopPath(str(place))}
        session = SimpleNamespace(catalog=lambda: SimpleNamespace(defaultTablePath=places.__getitem__))
        self.spark: Any = SimpleNamespace(
            _jvm=SimpleNamespace(org=SimpleNamespace(apache=apache), scala=SimpleNamespace(Option=option)),
            _jsc=SimpleNamespace(hadoopConfiguration=lambda: None),
            _jsparkSession=SimpleNamespace(sessionState=lambda: session),
            catalog=SimpleNamespace(createTable=lambda name, path, source: self.made.append((name, path))),
        )

    def has(self, *names: str) -> Lake:
        for name in names:
            file = self.place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.mkdir() if name.endswith("/") else file.write_text("{}")
        return self

    def goes_on(self) -> bool:
        return Delta().go_on_making(self.spark, "`lake`.`changes`", "lake", "changes")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "changes")


@pytest.mark.parametrize(
    "left",
    [
        ("_delta_log/",),
        ("_delta_log/_staged_commits/",),
        ("_delta_log/_staged_commits/", f"_delta_log/.{0:020}.json.tmp"),
    ],
)
def test_a_log_without_a_commit_is_removed(lake: Lake, left: tuple[str, ...]) -> None:
    assert lake.has(*left).goes_on()
    assert not lake.place.exists() and not lake.made


def test_a_log_whose_only_commit_made_the_table_is_given_back_to_the_catalog(lake: Lake) -> None:
    lake.has(FIRST, FIRST.replace("json", "crc"), "_delta_log/_staged_commits/")
    assert lake.goes_on()
    assert lake.made == [("`lake`.`changes`", str(lake.place))] and (lake.place / FIRST).exists()


@pytest.mark.parametrize(
    "left",
    [
        (FIRST, SECOND), ("part-0.parquet",), ("_delta_log/", "part-0.parquet"), ("_delta_log/notes.txt",),
        ("_delta_log/_staged_commits/a.json",), (),
    ],
)  # fmt: skip
def test_what_may_have_rows_or_is_of_somebody_else_stays(lake: Lake, left: tuple[str, ...]) -> None:
    assert not lake.has(*left).goes_on()
    assert not lake.made and all((lake.place / name).exists() for name in left)


def test_a_commit_that_comes_while_the_log_is_removed_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    delete: Callable[..., bool] = HadoopPath._deleted

    def late(path: HadoopPath, recursive: bool) -> bool:
        lake.has(FIRST)
        return delete(path, recursive)

    monkeypatch.setattr(HadoopPath, "_deleted", staticmethod(late))
    assert not lake.has(f"_delta_log/.{0:020}.json.tmp").goes_on()
    assert (lake.place / FIRST).exists()


def test_iceberg_makes_a_table_wherever_the_catalog_has_none(lake: Lake) -> None:
    assert not Iceberg().go_on_making(lake.spark, "`lake`.`changes`", "lake", "changes")
