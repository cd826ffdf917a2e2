"""docs/reference/ says what the code says: the pages are those that docs/reference.py writes now."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_those_of_the_code(reference: ModuleType):
    pages = reference.pages()
    stale = [str(path) for path, text in pages.items() if (ROOT / path).read_text() != text]
    assert not stale, f"run `make reference`, and review {', '.join(stale)}"
    assert {path.name for path in (ROOT / reference.PAGES).iterdir()} == {path.name for path in pages}


def test_what_is_not_described_and_what_is_not_in_the_code_is_named(reference: ModuleType):
    with pytest.raises(LookupError, match=r"^variables: the code reads b, c; describe it in docs/reference.py$"):
        reference.checked("variables", {"a": ""}, {"a", "b", "c"})
    with pytest.raises(LookupError, match=r"^variables: docs/reference.py describes d, which the code does not read$"):
        reference.checked("variables", {"a": "", "d": ""}, {"a"})


def test_a_subcommand_that_has_no_section_is_named(reference: ModuleType):
    with pytest.raises(LookupError, match=r"^job.py: its subcommands are one, two"):
        reference._check_kinds("job", ["one"], "positional arguments:\n  KIND\n    one   the first\n    two\n  more\n")


def test_a_bar_in_a_cell_is_escaped_and_refused_within_backticks(reference: ModuleType):
    assert reference._table(["one"], [["`a`", "b | `c`"]]).splitlines()[-1] == r"| `a` | b \| `c` |"
    with pytest.raises(LookupError, match=r"^tables: .* word this otherwise: `b\|c`$"):
        reference._table(["one"], [["`a`", "`b|c`"]])


def test_a_generic_test_is_declared_as_dbt_reads_it(reference: ModuleType):
    (parity,) = yaml.safe_load(reference._declared("parity"))["data_tests"]
    arguments = parity["reconcile.parity"]["arguments"]
    assert list(arguments)[:2] == ["compare_to", "key"]
    assert (arguments["columns"], arguments["allowance"], arguments["recheck"]) == (None, "10 minutes", 0)
    assert yaml.safe_load(reference._declared("no_drift")) == {"data_tests": ["reconcile.no_drift"]}


def test_an_argument_without_an_example_is_named(reference: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reference, "EXAMPLES", {"key": "id"})
    with pytest.raises(LookupError, match=r"^macros: parity needs compare_to; give an example in docs/reference.py$"):
        reference._declared("parity")


def test_defaults_are_those_of_the_code_and_the_same_everywhere(reference: ModuleType):
    rows, pattern = [["`a`", "one"], ["`b`", "two"]], r"var\('(\w+)', (\w+)\)"
    assert reference.with_defaults(rows, pattern, "var('a', 1) var('b') var('a', 1)") == [
        ["`a`", "`1`", "one"],
        ["`b`", "", "two"],
    ]
    with pytest.raises(LookupError, match=r"^variables: of a the code has the defaults `1` and `2`$"):
        reference.with_defaults(rows, pattern, "var('a', 1) var('a', 2)")


def test_what_an_editor_leaves_beside_the_code_is_not_read(
    reference: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "one.sql").write_text("one")
    (tmp_path / "conf" / ".one.sql.swp").write_bytes(b"b0VIM\xff\xfe")
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    reference._code.cache_clear()
    try:
        assert reference._code("conf") == "one"
    finally:
        reference._code.cache_clear()
