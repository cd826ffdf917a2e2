"""Data Docs: a page for each run that looked at staged records, and an index of them, which load nothing to be shown.

The pages of Great Expectations load styles, icons and scripts from other hosts: without internet its index is empty and
what failed looks like what passed. What it found is kept beside each page, in its own form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Run", "write"]

# Everything that was delivered is escaped; should markup come through all the same, a browser runs and loads nothing.
# Each page is XML too, so that a parser that forgives nothing can look for what was not escaped.
_TEMPLATES = {
    "page": """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="viewport" content="width=device-width"/>
<title>{% block title %}{% endblock %}</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; width: 100%; margin-bottom: 2rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem; border-bottom: 1px solid #ccc; }
td { overflow-wrap: anywhere; }
.number { text-align: right; }
.whole, .passed, .failed { white-space: nowrap; }
.passed, .failed { font-weight: bold; padding: .1rem .6rem; border-radius: .3rem; color: #fff; }
.passed { background: #1a7f37; }
.failed { background: #b3261e; }
</style>
</head>
<body>
{% block body %}{% endblock %}
</body>
</html>
""",
    "outcome": """\
{% macro outcome(of) -%}
<span class="{{ of.success | word }}">{{ of.success | word }}</span>
{%- endmacro %}
""",
    "index": """\
{% extends "page" %}
{% from "outcome" import outcome %}
{% block title %}Expectations of staged records{% endblock %}
{% block body %}
<h1>Expectations of staged records</h1>
<table>
<thead><tr><th>Outcome</th><th>Checked at (UTC)</th><th>Staging table</th><th>Batches</th>
<th class="number">Records</th><th>Not as expected</th></tr></thead>
<tbody>
{% for name, run in runs %}
<tr>
<td>{{ outcome(run) }}</td>
<td class="whole"><a href="runs/{{ name | urlencode }}.html">{{ run.at }}</a></td>
<td class="whole">{{ run.staging }}</td>
<td>{{ run.batches }}</td>
<td class="number">{{ run.records | number }}</td>
<td>{% for found in run.found if not found.success %}{{ found.expectation_config.description }} {% endfor %}</td>
</tr>
{% endfor %}
</tbody>
</table>
{% endblock %}
""",
    "run": """\
{% extends "page" %}
{% from "outcome" import outcome %}
{% block title %}{{ run.success | word }}: {{ run.staging }}{% endblock %}
{% block body %}
<p><a href="../index.html">All runs</a></p>
<h1>{{ run.staging }} {{ outcome(run) }}</h1>
<p>Batches: {{ run.batches }}. Records: {{ run.records | number }}. Checked at: {{ run.at }} UTC.</p>
<table>
<thead><tr><th>Outcome</th><th>Expected</th><th class="number">Failed</th><th class="number">Of</th></tr></thead>
<tbody>
{% for found in run.found %}
<tr>
<td>{{ outcome(found) }}</td>
<td>{{ found.expectation_config.description }}</td>
{% if "unexpected_count" in found.result %}
{# NULL where there are no rows #}
<td class="number">{{ (found.result.unexpected_count or 0) | number }}</td>
<td class="number">{{ found.result.element_count | number }}</td>
{% else %}
<td colspan="2">could not be checked: {{ found.exception_info }}</td>
{% endif %}
</tr>
{% endfor %}
</tbody>
</table>
{% for found in run.found if found.result.get("partial_unexpected_index_list") %}
<h2>{{ found.expectation_config.description }}</h2>
<p>The first {{ found.result.partial_unexpected_index_list | length }} of
{{ found.result.unexpected_count | number }} that failed:</p>
<table>
{% set names = found.result.partial_unexpected_index_list[0] %}
<thead><tr>{% for name in names %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for example in found.result.partial_unexpected_index_list %}
<tr>{% for name in names %}<td>{{ example[name] }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
{% endfor %}
{% endblock %}
""",
}


@cache
def _pages() -> Any:
    # A job that expects nothing runs where there is no Jinja.
    import jinja2

    pages = jinja2.Environment(
        loader=jinja2.DictLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    pages.filters |= {"word": {True: "passed", False: "failed"}.get, "number": "{:,}".format}
    return pages


@dataclass(frozen=True)
class Run:
    """What a run looked at and when, in UTC; `found` is Great Expectations' result for each expectation, as JSON."""

    staging: str
    first_batch: int
    last_batch: int
    records: int
    at: str
    found: list[dict[str, Any]]

    @property
    def batches(self) -> str:
        """Their numbers."""
        return f"{self.first_batch}" + (f" to {self.last_batch}" if self.last_batch != self.first_batch else "")

    @property
    def success(self) -> bool:
        """Whether all was as expected."""
        return all(found["success"] for found in self.found)


def write(directory: Path, name: str, run: Run) -> Path:
    """Write the run's page, and the index of all runs anew; return the index. Names of runs sort by time."""
    runs = directory / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    _put(runs / f"{name}.html", _pages().get_template("run").render(run=run))
    _put(runs / f"{name}.json", json.dumps(asdict(run), indent=1))
    index = directory / "index.html"
    _put(index, _pages().get_template("index").render(runs=_kept(runs)))
    return index.resolve()


def _kept(runs: Path) -> Iterator[tuple[str, Run]]:
    for path in sorted(runs.glob("*.json"), reverse=True):
        # A file that somebody has cut or put there is no reason to fail after each append.
        with suppress(ValueError, TypeError, KeyError, RecursionError, OSError):
            run = Run(**json.loads(path.read_text(encoding="utf-8")))
            shown = [(found["success"], found["expectation_config"]["description"]) for found in run.found]
            if isinstance(run.records, int) and all(isinstance(success, bool) for success, _ in shown):
                yield path.stem, run


def _put(path: Path, text: str) -> None:
    # A run that is killed leaves no half of a file, which the next run could not read.
    written = path.with_name(f"{path.name}.part")
    written.write_text(text, encoding="utf-8")
    written.replace(path)
