"""What README and docs/quickstart.md show of examples/quickstart is what its files have."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "quickstart"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "quickstart.md"


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a page in a language, without a first line that only names the file."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.S | re.M)
    return [re.sub(r"\A(--|#) \S+\n", "", block) for block in found]


@pytest.mark.parametrize(
    ("page", "file"),
    [
        *((README, file) for file in ("models/orders.sql", "models/orders.yml")),
        *((PAGE, file) for file in ("models/orders.sql", "models/orders.yml", "profiles.yml", "dbt_project.yml")),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_a_page_shows_the_file_as_it_is(page: Path, file: str) -> None:
    assert (EXAMPLE / file).read_text() in blocks(page, Path(file).suffix.replace(".yml", ".yaml")[1:])


def test_the_record_on_the_page_is_one_of_the_example() -> None:
    lines = [line for file in EXAMPLE.glob("landing/**/*.jsonl") for line in file.read_text().splitlines()]
    (shown,) = map(json.loads, blocks(PAGE, "json"))
    assert shown in map(json.loads, lines)
    orders = {json.loads(line)["payload"]["id"] for line in lines}
    assert (len(lines), len(set(lines)), orders) == (15, 14, {*range(1, 11)})


def test_the_readme_has_the_commands_that_make_quickstart_prints() -> None:
    script = ast.parse((ROOT / "demo" / "quickstart.py").read_text())
    words = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in script.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    commands = [
        "dbt deps",
        f"export SPARK_CONF_DIR={words['CONF']}",
        f"spark-submit dbt_packages/reconcile/ingestion/append.py {words['WORDS']}",
    ]
    assert "".join(f"    {command}\n" for command in commands) in README.read_text()


def test_the_readme_is_short() -> None:
    assert len(README.read_bytes()) <= 8192


def test_the_example_installs_the_package_which_has_nothing_of_it() -> None:
    assert yaml.safe_load((EXAMPLE / "packages.yml").read_text()) == {"packages": [{"local": "../.."}]}
    package = yaml.safe_load((ROOT / "dbt_project.yml").read_text())
    paths = {name: str(said) for name, said in package.items() if name.endswith("-paths")}
    assert paths.keys() >= {"model-paths", "macro-paths", "seed-paths", "test-paths"}, "a default may be any folder"
    assert not [name for name, said in paths.items() if "examples" in said or "'.'" in said]
    assert package["profile"] not in yaml.safe_load((EXAMPLE / "profiles.yml").read_text()), "or models/demo is on"
