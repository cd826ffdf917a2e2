"""The state of a project as one page of HTML that loads nothing: for a screen, a phone, in the dark, and on paper."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import jinja2

from reconcile_jobs.monitoring.state import DAYS, STATES, State
from reconcile_jobs.process.console import printable

__all__ = ["html", "unknown"]

# How much the page shows of a text that came from outside; the views have all of it.
_LONGEST = 160
_MOST = 3
# A shape and a word for each state, so that nobody needs to tell colours apart.
_SHAPES = {"wrong": "✖", "stopped": "■", "look": "◆", "wait": "▲", "right": "●", "not known": "?"}
_MEANING = {
    "wrong": "data are wrong or missing: quarantined records, confirmed differences, a staging table that was set back",
    "stopped": "nothing has been appended, or no run has applied what was, for too long: whatever the tests say, the "
    "models show a time that is past; look whether the append job and dbt still run",
    "look": "somebody has to look: drift, pending rows, objects that no model reads, models that were never built, "
    "rows that parity cannot decide",
    "wait": "time may cure it: records that are not applied yet, rows in flight",
    "right": "nothing is wrong",
}
# Units of the plots: a day is this wide, and the greatest value this high.
_WIDTH, _HEIGHT = 8, 32

# Everything is escaped; should markup come through all the same, a browser runs and loads nothing. The page is XML too,
# so that a parser that forgives nothing can look for what was not escaped. Below 60rem each row is a block, and each
# cell says in a word what it is.
_TEMPLATES = {
    "page": """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>{% block title %}{% endblock %}</title>
<style>
:root { --text: #1b1f24; --faint: #57606a; --back: #fff; --line: #d0d7de; --bar: #4a6a8a;
 --wrong: #a40e26; --stopped: #a40e26; --look: #8a4600; --wait: #6a5200; --right: #11632b; }
@media screen and (prefers-color-scheme: dark) {
 :root { --text: #e6edf3; --faint: #9aa4af; --back: #0d1117; --line: #30363d; --bar: #8fb4dc;
 --wrong: #ff8f88; --stopped: #ff8f88; --look: #f0a868; --wait: #d9bd5a; --right: #67cf7d; }
}
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 110rem; color: var(--text);
 background: var(--back); }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.5rem 0 .5rem; }
a { color: inherit; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid var(--line); }
th { background: var(--back); position: sticky; top: 0; }
bdi { overflow-wrap: anywhere; }
small { color: var(--faint); display: block; }
b { white-space: nowrap; }
.models td:nth-child(3) { min-width: 8.5rem; }
.wrong { color: var(--wrong); } .stopped { color: var(--stopped); } .look { color: var(--look); }
.wait { color: var(--wait); } .right { color: var(--right); }
.badge { border: 2px solid; border-radius: .3rem; padding: 0 .5rem; display: inline-block; }
.badge.wrong, .badge.stopped { background: var(--wrong); border-color: var(--wrong); color: var(--back); }
.counts { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; margin: .5rem 0; padding: 0; }
.plots { white-space: nowrap; }
svg { display: block; width: 10rem; height: 1.4rem; border-bottom: 1px solid var(--line); }
path { stroke: var(--bar); fill: none; vector-effect: non-scaling-stroke; }
.bars { stroke-width: 4; } .dots { stroke-width: 5; stroke-linecap: round; }
dt { font-weight: bold; } dd { margin: 0 0 .3rem 1rem; }
@media screen and (max-width: 60rem) {
 table, tbody, tr, td { display: block; } thead { display: none; }
 tr { border: 1px solid var(--line); border-radius: .4rem; padding: .4rem; margin-bottom: .6rem; }
 td { border: 0; padding: .1rem .3rem; } td:empty { display: none; }
 td::before { color: var(--faint); } .plots { white-space: normal; }
{% for name, words in columns.items() %}
{% for word in words %}
 .{{ name }} td:nth-child({{ loop.index + 2 }})::before { content: "{{ word }}: "; }
{% endfor %}
{% endfor %}
}
@media print {
 body { font-size: 9px; padding: 0; max-width: none; } tr { break-inside: avoid; } th { position: static; }
 svg { width: 6rem; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
</style>
</head>
<body>
{% block body %}{% endblock %}
</body>
</html>
""",
    "unknown": """\
{% extends "page" %}
{% block title %}not known: {{ view }}{% endblock %}
{% block body %}
<h1>State of <bdi>{{ view }}</bdi></h1>
<p><b class="badge wrong">{{ "not known" | shape }} not known</b></p>
<p>At {{ at | moment }} the state could not be read: {{ why }}</p>
<p>What an earlier page said may not hold any more.</p>
{% endblock %}
""",
    "state": """\
{% extends "page" %}
{% macro named(state, more="") -%}
<b class="{{ more }}{{ state }}">{{ state | shape }} {{ state }}</b>
{%- endmacro %}
{% macro head(words) -%}
<thead><tr><th>State</th><th>Name</th>{% for word in words %}<th>{{ word }}</th>{% endfor %}</tr></thead>
{%- endmacro %}
{% macro plot(what, kind, path, most) -%}
{% if path -%}
<svg viewBox="0 0 {{ width }} {{ height }}" preserveAspectRatio="none" role="img" \
aria-label="{{ what }} by day, at most {{ most }}"><path class="{{ kind }}" \
d="{{ path }}"/></svg><small>{{ what }}, at most {{ most }}</small>
{%- endif %}
{%- endmacro %}
{% block title %}{{ state.state }}: {{ view }}{% endblock %}
{% block body %}
<h1>State of <bdi>{{ view }}</bdi></h1>
<p>{{ named(state.state, "badge ") }} at {{ state.at | moment }}</p>
<ul class="counts">
{% for word in words if state.count(word) %}
<li>{{ state.count(word) | number }} {{ "model" if state.count(word) == 1 else "models" }}: \
<a href="#{{ word }}">{{ named(word) }}</a></li>
{% else %}
<li>The project had no model when the views were made.</li>
{% endfor %}
</ul>
<h2>Staging tables</h2>
<table class="staging">
{{ head(columns.staging) }}
<tbody>
{% for each in state.staging %}
<tr><td>{{ named(each.state) }}</td><td><bdi>{{ each.name | plain }}</bdi></td>
<td>{% if each.appended_at %}{{ each.age_seconds | duration }} ago<small>{{ each.appended_at | moment }}, \
batch {{ each.last_batch }}</small>{% else %}never{% endif %}</td>
<td>{% for found in each.findings[:most] %}<div><bdi>{{ found | plain }}</bdi></div>{% endfor %}\
{{ more(each.findings) }}</td></tr>
{% else %}
<tr><td></td><td>No model reads a staging table.</td></tr>
{% endfor %}
</tbody>
</table>
{% if state.others %}
<h2>Of no model below</h2>
<ul class="others">
{% for word, sentence in state.others %}
<li>{{ named(word) }} <bdi>{{ sentence | plain }}</bdi></li>
{% endfor %}
</ul>
{% endif %}
<h2>Models, the worst first</h2>
<p>Those of the project when dbt made the views. A model that was declared since then is not among them.</p>
<table class="models">
{{ head(columns.models) }}
<tbody>
{% for model in state.models %}
{% set row = model.row %}
<tr{% if loop.index0 in first %} id="{{ model.state }}"{% endif %}><td>{{ named(model.state) }}</td>
<td><bdi>{{ row.relation | plain }}</bdi><small>{{ row.materialized }}{% if row.staging %} of \
<bdi>{{ row.staging | plain }}</bdi>{% endif %}</small>\
{% if row.set_back %}<div>set back: <bdi>{{ row.set_back | plain }}</bdi></div>{% endif %}</td>
<td>{% if not row.is_built %}never built<small>run dbt, and see what it says of the model if it fails</small>\
{% elif model.as_of %}{{ row.lag_seconds | duration }} ago<small>{{ model.as_of | moment }}</small>\
{% else %}not known{% endif %}</td>
{% if row.is_built %}
<td>{% if row.records_behind %}{{ row.records_behind | number }} in {{ row.batches_behind | number }} \
{{ "batch" if row.batches_behind == 1 else "batches" }}{% else %}0{% endif %}\
{% if model.late_seconds is not none %}<div>no run applied them for {{ model.late_seconds | duration }}: look whether \
dbt still runs</div>{% endif %}</td>
<td>{{ row.quarantined | number }}{% for each in row.quarantine_reasons or [] %}<small>{{ each.records | number }}: \
<bdi>{{ each.reason | plain }}</bdi></small>{% endfor %}</td>
<td>{{ row.pending_rows | number }}</td>
<td>{% if row.drift %}{% for each in row.drift[:most] %}<div><bdi>{{ each | plain }}</bdi></div>{% endfor %}\
{{ more(row.drift) }}{% else %}none{% endif %}</td>
{% else %}
<td></td><td></td><td></td><td></td>
{% endif %}
<td>{% if row.parity_verdict %}{{ row.parity_verdict | replace("_", " ") }}<small>\
{{ model.compared_seconds | duration }} ago</small>{% else %}never{% endif %}</td>
<td>{% if not row.is_built %}{% elif row.stored_rows is none %}none stored{% else %}\
{{ row.stored_rows | number }}{% endif %}</td>
<td class="plots">{{ plot("lag", "dots", dots(model.lag_by_day), longest(model.lag_by_day) | duration) }}\
{{ plot("applied", "bars", bars(model.applied_by_day), longest(model.applied_by_day) | number) }}</td></tr>
{% endfor %}
</tbody>
</table>
<h2>What the words mean</h2>
<dl>
{% for word, said in meaning.items() %}
<dt>{{ named(word) }}</dt><dd>{{ said }}</dd>
{% endfor %}
<dt>As of</dt><dd>everything that was appended before this time is applied</dd>
<dt>Last {{ days }} days</dt><dd>by day in UTC, the last one on the right: the longest time from an append until \
it was applied, and the records that were applied; not of rebuilds and replays</dd>
</dl>
{% endblock %}
""",
}
# The columns behind state and name.
_COLUMNS = {
    "staging": ("Last append", "Records that no model takes"),
    "models": (
        "As of", "Records behind", "Quarantined", "Pending rows", "Drift", "Parity", "Stored rows", f"Last {DAYS} days",
    ),
}  # fmt: skip


def html(state: State, view: str) -> str:
    """Return the page of a state; `view`: the name of the view that it was read from."""
    states = [model.state for model in state.models]
    first = {states.index(word) for word in {*states}}
    return _PAGES.get_template("state").render(
        state=state, view=printable(view), first=first, words=STATES, meaning=_MEANING,
        width=DAYS * _WIDTH, height=_HEIGHT, most=_MOST, days=DAYS, dots=_dots, bars=_bars, longest=_longest,
        more=_more,
    )  # fmt: skip


def unknown(view: str, why: str, at: datetime) -> str:
    """Return the page of a project whose state could not be read; `at` is in UTC."""
    return _PAGES.get_template("unknown").render(view=printable(view), why=printable(why), at=at)


def _plain(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _duration(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 60:
        return f"{max(seconds, 0)} s"
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"


def _more(texts: Sequence[str]) -> str:
    return f"and {len(texts) - _MOST:,} more" if len(texts) > _MOST else ""


def _longest(values: Sequence[int | None]) -> int:
    return max((value for value in values if value is not None), default=0)


def _heights(values: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return the middle of each day that has a value, and how high the value stands there."""
    most = max(_longest(values), 1)
    return [
        (place * _WIDTH + _WIDTH // 2, round(max(value, 0) * (_HEIGHT - 8) / most))
        for place, value in enumerate(values)
        if value is not None
    ]


def _dots(values: Sequence[int | None]) -> str:
    return "".join(f"M{x} {_HEIGHT - 4 - height}h0" for x, height in _heights(values))


def _bars(values: Sequence[int | None]) -> str:
    # A day on which nothing was applied of what came has a low bar; a day without a batch has none.
    return "".join(f"M{x} {_HEIGHT}v-{height + 2}" for x, height in _heights(values))


_PAGES = jinja2.Environment(
    loader=jinja2.DictLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
)
_PAGES.filters |= {
    "shape": _SHAPES.__getitem__, "plain": _plain, "moment": _moment, "duration": _duration, "number": "{:,}".format,
}  # fmt: skip
_PAGES.globals |= {"columns": _COLUMNS}
