"""Any text as a literal of Jinja, as a value of dbt's YAML, as a comment, and in a cell of Markdown: here alone."""

from __future__ import annotations

import html
import re

from jinja2 import TemplateError
from jinja2.sandbox import SandboxedEnvironment

__all__ = ["commented", "in_cell", "jinja_literal", "jinja_value", "unrendered", "yaml_value"]

# What nobody can read, and what Jinja, dbt or an editor would take for the end of something.
_ODD = re.compile(
    r"[\x00-\x1f\x7f-\xa0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\uffff]"
)
# Words that YAML 1.1, which dbt reads, takes for booleans and nulls.
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
_RENDERED = re.compile(r"\{[{%#]|[%#}]\}")  # what dbt looks for before it renders a text


def jinja_literal(text: str) -> str:
    """Return a text as a literal in single quotes, of ASCII escapes where Jinja or dbt might see something in it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + re.sub(r"[{}%#]", _escape, _ODD.sub(_escape, escaped)) + "'"


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def jinja_value(names: list[str] | tuple[str, ...]) -> str:
    """Return one name as a literal, several as a list of literals."""
    literals = [jinja_literal(name) for name in names]
    return literals[0] if len(literals) == 1 else f"[{', '.join(literals)}]"


def yaml_value(text: str) -> str:
    """Return a text as a value in one line of dbt's YAML, which dbt renders as Jinja after reading it."""
    if _RENDERED.search(text):
        text = f"{{{{ {jinja_literal(text)} }}}}"
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) and text.lower() not in _WORDS:
        return text
    # Types, as decimal(18,4): a comma means something only in braces, where none is written.
    if re.fullmatch(r"[a-z_]+\([0-9, ]+\)|(?:array|map)<[a-z0-9_<>]+>|[a-z][a-z0-9_]*\.[a-z0-9_.]+", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _ODD.sub(_yaml_escape, escaped) + '"'


def _yaml_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(found[0]) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    )


def unrendered(value: object) -> str:
    """Return the text that dbt has after rendering a value of YAML; the value itself where it cannot be rendered."""
    text = str(value)
    if not _RENDERED.search(text):
        return text
    try:
        return SandboxedEnvironment(keep_trailing_newline=True).from_string(text).render()
    except (TemplateError, TypeError, ValueError, ArithmeticError, RecursionError):
        return text


def commented(text: str) -> str:
    """Return a text for a comment of one line."""
    return re.sub(r"\s+", " ", _ODD.sub(" ", text)).strip()


def in_cell(text: str) -> str:
    """Return a text for a cell of a Markdown table, which dbt reads too, in search of its own blocks of Jinja."""
    parts = commented(text).replace("|", "\\|").split("`")
    for at, part in enumerate(parts):
        if at % 2 == 0:
            part = html.escape(part, quote=False).replace("{", "&#123;")
        parts[at] = re.sub(r"\{(?=[{%#])", "{ ", part)
    return "`".join(parts)
