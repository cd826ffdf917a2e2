"""Names with a catalog, on Spark: see `in_several_catalogs.py`, which has a session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from catalogs import configuration
from file_formats import file_format

if file_format() != "delta":
    pytest.skip("its session has both formats", allow_module_level=True)

HERE = Path(__file__).parent


@pytest.mark.soak
@pytest.mark.parametrize("scenario", ["delta_beside_iceberg", "capture_in_three_catalogs"])
def test_staging_models_and_snapshots_are_in_several_catalogs_of_one_session(scenario: str, tmp_path: Path) -> None:
    environment = {**os.environ, "SPARK_CONF_DIR": str(configuration(tmp_path / "conf"))}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (HERE.parent, HERE.parents[1] / "ingestion")))
    (tmp_path / "shop").mkdir()
    done = subprocess.run(
        [sys.executable, str(HERE / "in_several_catalogs.py"), scenario],
        cwd=tmp_path / "shop", env=environment, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.endswith("all of it holds\n"), done.stdout[-6000:] + done.stderr[-6000:]
