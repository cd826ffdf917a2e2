"""New columns in YAML that somebody wrote: ruamel.yaml finds the place, and every byte that was there stays.

ruamel.yaml's own round trip keeps comments, order and quotes, but writes the whole document anew: long lines are
folded, blanks and indentations become alike. So its parser tells where nodes begin and end, lines are inserted there,
and the text that results is read again: it must be the old document and the new columns, or nothing is written.

What a file says is read by PyYAML, as dbt reads it, and in a tenth of the time; ruamel.yaml parses the few files that
change.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconcile_jobs.generation.escaping import unrendered
from reconcile_jobs.generation.tables import Column
from reconcile_jobs.generation.yaml_text import column_in_braces, column_lines

__all__ = ["Declared", "Document", "NotEditable", "UnreadableYaml", "paths_of_models"]


class UnreadableYaml(ValueError):
    """A text is no YAML; the message says why and where."""


class NotEditable(ValueError):
    """A column cannot be added in this place; the message says why."""


@dataclass(frozen=True)
class Declared:
    """A column as YAML has it. `meta`: the options in `config: {meta: ...}`, or in `meta`."""

    name: str
    data_type: str | None
    meta: dict[str, Any]

    @property
    def former_names(self) -> list[str]:
        """The names that the column had at its source before: the option `was`."""
        was = self.meta.get("was") or []
        return [unrendered(name) for name in (was if isinstance(was, list) else [was])]


class Document:
    """A file of dbt's YAML. Its text may begin with a byte order mark, and its lines may end in CR LF."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        self._plain = text[len(self._mark) :]
        self._read = _read(self._plain)

    def models(self) -> Iterator[str]:
        """Yield the names of the models that the file says something of."""
        for entry in self._entries("models"):
            if "name" in entry:
                yield unrendered(entry["name"])

    def sources(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the tables of sources: source and table as models name them, then schema and table as they are."""
        for entry in self._entries("sources"):
            name = unrendered(entry.get("name", ""))
            schema = unrendered(entry.get("schema") or name)
            if (catalog := entry.get("database")) and unrendered(catalog) != schema:
                schema = f"{unrendered(catalog)}.{schema}"
            for table in _mappings(entry.get("tables")):
                of_table = unrendered(table.get("name", ""))
                yield name, of_table, schema, unrendered(table.get("identifier") or of_table)

    def columns(self, model: str) -> list[Declared]:
        """Return the columns that the file declares for a model."""
        found = []
        for column in _mappings(self._model(model).get("columns")):
            config, data_type = column.get("config"), column.get("data_type")
            meta = (config.get("meta") if isinstance(config, dict) else None) or column.get("meta")
            options = meta if isinstance(meta, dict) else {}
            if "name" in column:
                found.append(
                    Declared(unrendered(column["name"]), unrendered(data_type) if data_type else None, options)
                )
        return found

    def unique_key(self, model: str) -> list[str] | None:
        """Return the key in the `config:` of a model, None if there is none."""
        config = self._model(model).get("config")
        key = config.get("unique_key") if isinstance(config, dict) else None
        return [unrendered(name) for name in (key if isinstance(key, list) else [key])] if key else None

    def ignored(self, model: str) -> list[str]:
        """Return the columns in the option `ignored_columns` of a model."""
        entry = self._model(model)
        config = entry.get("config")
        for meta in (config.get("meta") if isinstance(config, dict) else None, entry.get("meta")):
            if isinstance(meta, dict) and isinstance(meta.get("ignored_columns"), list):
                return [unrendered(name) for name in meta["ignored_columns"]]
        return []

    def with_columns(self, model: str, columns: Sequence[Column]) -> str:
        """Return the text with further columns at the end of a model's columns. Raises NotEditable."""
        named = (node for node in _items(_value(_composed(self._plain), "models")) if _is_named(node, model))
        entry = next(named, None)
        if not isinstance(entry, MappingNode):
            raise NotEditable("its entry is that of another place of the file")
        key, listed = next(((k, v) for k, v in _pairs(entry) if _scalar(k) == "columns"), (None, None))
        if key is None and any(_scalar(k) == "<<" for k, _ in _pairs(entry)):
            raise NotEditable("the model takes its entries from another place of the file, by `<<`")
        if listed is not None and key is not None and listed.start_mark.index < key.end_mark.index:
            raise NotEditable("its columns are those of another place of the file, by an alias")
        if listed is not None and listed.anchor:
            raise NotEditable(f"its columns have the anchor &{listed.anchor}, so that other models may have them too")
        if isinstance(listed, SequenceNode) and listed.value:
            text = self._in_list(listed, columns)
        elif isinstance(listed, SequenceNode) or _is_null(listed):
            text = self._in_empty(entry, key, listed, columns)
        else:
            raise NotEditable("`columns:` is no list")
        try:
            _check(self._read, text, model, columns)
        except RecursionError:
            raise NotEditable("something in the file holds itself, by an alias") from None
        return self._mark + text

    def _entries(self, kind: str) -> list[dict[str, Any]]:
        return _mappings(self._read.get(kind)) if isinstance(self._read, dict) else []

    def _model(self, model: str) -> dict[str, Any]:
        return next((entry for entry in self._entries("models") if unrendered(entry.get("name")) == model), {})

    # --- where the lines go ---

    def _in_list(self, listed: SequenceNode, columns: Sequence[Column]) -> str:
        if listed.flow_style:
            return self._in_brackets(listed, columns)
        first, last = listed.value[0], listed.value[-1]
        if any(item.start_mark.index < listed.start_mark.index for item in (first, last)):
            raise NotEditable("one of its columns is an alias")
        dash = self._plain.rindex("-", 0, first.start_mark.index)
        indent = dash - self._line_start(dash)
        gap = first.start_mark.index - dash
        if "\n" in self._plain[dash : first.start_mark.index]:  # the item begins in the line after its dash
            gap = 2
        blank = len(listed.value) > 1 and all(
            self._plain[: self._dash_line(item)].endswith(("\n\n", "\n\r\n")) for item in listed.value[1:]
        )
        lines: list[str] = []
        for column in columns:
            name, *rest = column_lines(column)
            lines += [""] if blank else []
            lines.append(" " * indent + "-" + " " * (gap - 1) + name)
            lines += [" " * (indent + gap) + line for line in rest]
        return self._after_line(self._end(last), indent, lines)

    def _in_brackets(self, listed: SequenceNode, columns: Sequence[Column]) -> str:
        written = ", ".join(column_in_braces(column) for column in columns)
        closing = listed.end_mark.index - 1
        before = self._plain[:closing]
        stripped = before.rstrip()
        if listed.value and self._end(listed.value[-1]) < len(stripped) and stripped.endswith(","):
            return before[: len(stripped)] + " " + written + self._plain[len(stripped) :]
        end = self._end(listed.value[-1]) if listed.value else closing
        return self._plain[:end] + (", " if listed.value else "") + written + self._plain[end:]

    def _in_empty(self, entry: MappingNode, key: Node | None, listed: Node | None, columns: Sequence[Column]) -> str:
        if entry.flow_style:
            written = f"[{', '.join(column_in_braces(column) for column in columns)}]"
            if key is None:
                end = self._end(entry.value[-1][1])
                return f"{self._plain[:end]}, columns: {written}{self._plain[end:]}"
            start, end = self._span(key, listed)
            return f"{self._plain[:start]}: {written}{self._plain[end:]}"
        indent = entry.value[0][0].start_mark.column
        lines = []
        for column in columns:
            name, *rest = column_lines(column)
            lines += [" " * (indent + 2) + "- " + name, *(" " * (indent + 4) + line for line in rest)]
        if key is None:
            end = max(self._end(value) if not _is_empty(value) else name.end_mark.index for name, value in entry.value)
            return self._after_line(end, indent, [" " * indent + "columns:", *lines])
        start, end = self._span(key, listed)
        text = self._plain[:start] + ":" + self._plain[end:]
        return self._after_line(start, indent + 1, lines, text)

    def _span(self, key: Node, listed: Node | None) -> tuple[int, int]:
        """Return where a key ends and where its empty value ends: `: []`, `: null`, `:`."""
        start = key.end_mark.index
        if listed is None or _is_empty(listed):
            return start, self._plain.index(":", start) + 1
        return start, listed.end_mark.index

    def _end(self, node: Node) -> int:
        """Return where the text of a node ends, without blanks and comments that follow."""
        if isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
            if isinstance(node, SequenceNode):
                return self._end(node.value[-1])
            key, value = node.value[-1]
            # An alias stands where its anchor does not.
            is_elsewhere = _is_empty(value) or value.start_mark.index < key.end_mark.index
            return self._end(key if is_elsewhere else value)
        end = int(node.end_mark.index)
        if isinstance(node, ScalarNode) and node.style in ("|", ">"):
            text = self._plain[node.start_mark.index : end]
            # With +, blank lines at the end belong to the value.
            return end - 1 if "+" in text.partition("\n")[0] else node.start_mark.index + len(text.rstrip()) - 1
        return end

    def _line_start(self, index: int) -> int:
        return self._plain.rfind("\n", 0, index) + 1

    def _dash_line(self, item: Node) -> int:
        return self._line_start(self._plain.rindex("-", 0, item.start_mark.index))

    def _after_line(self, index: int, indent: int, lines: Sequence[str], text: str | None = None) -> str:
        """Insert lines after the line of an index, and after comments that belong to what ends there."""
        text = self._plain if text is None else text
        newline = "\r\n" if "\r\n" in text else "\n"
        written = "".join(line + newline for line in lines)
        end = text.find("\n", index)
        if end < 0:
            return text + newline + written.removesuffix(newline)
        end += 1
        while (next_end := text.find("\n", end)) >= 0 or end < len(text):
            line = text[end : next_end if next_end >= 0 else len(text)]
            bare = line.lstrip(" ")
            if not bare.startswith("#") or len(line) - len(bare) < indent:
                break
            if next_end < 0:
                return text + newline + written.removesuffix(newline)
            end = next_end + 1
        return text[:end] + written + text[end:]


def paths_of_models(settings: str) -> list[str]:
    """Return the folders of models that a dbt_project.yml names. Raises UnreadableYaml."""
    read = _read(settings)
    named = read.get("model-paths") if isinstance(read, dict) else None
    return [str(path) for path in named] if isinstance(named, list) and named else ["models"]


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _read(text: str) -> Any:
    """Return what a text says, as dbt reads it."""
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        mark = getattr(problem, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        why = getattr(problem, "problem", None) or getattr(problem, "reason", None) or "its form"
        raise UnreadableYaml(f"{where}{why}") from None


def _composed(text: str) -> Node | None:
    parser = YAML(typ="rt", pure=True)
    parser.allow_duplicate_keys = True
    try:
        node = parser.compose(io.StringIO(text))
    except YAMLError:
        raise NotEditable("ruamel.yaml reads the file otherwise than dbt") from None
    return node if isinstance(node, Node) else None


def _check(before: Any, text: str, model: str, columns: Sequence[Column]) -> None:
    """Raise NotEditable unless the new text is the old document and the new columns."""
    try:
        after = _read(text)
    except UnreadableYaml:
        raise NotEditable("the text around its columns is too unusual") from None
    old, new = copy.deepcopy(before), copy.deepcopy(after)
    had, has = (
        next((e for e in _mappings(document.get("models")) if unrendered(e.get("name")) == model), {})
        for document in (old, new)
    )
    listed = has.get("columns") or []
    had["columns"] = had.get("columns") or []
    added = [unrendered(column["name"]) for column in listed[len(had["columns"]) :]]
    has["columns"] = listed[: len(had["columns"])]
    if added != [column.name for column in columns] or old != new:
        raise NotEditable("the text around its columns is too unusual")


def _mappings(listed: Any) -> list[dict[str, Any]]:
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _is_named(node: Node, model: str) -> bool:
    return unrendered(_scalar(_value(node, "name")) or "") == model


def _pairs(node: Node | None) -> list[tuple[Node, Node]]:
    return list(node.value) if isinstance(node, MappingNode) else []


def _items(node: Node | None) -> list[Node]:
    return list(node.value) if isinstance(node, SequenceNode) else []


def _value(node: Node | None, name: str) -> Node | None:
    """Return the value of a key, also one that `<<` brings in."""
    for key, value in _pairs(node):
        if _scalar(key) == name:
            return value
    for key, value in _pairs(node):
        if _scalar(key) == "<<":
            for merged in _items(value) or [value]:
                if (found := _value(merged, name)) is not None:
                    return found
    return None


def _scalar(node: Node | None) -> str | None:
    return str(node.value) if isinstance(node, ScalarNode) and not _is_null(node) else None


def _is_null(node: Node | None) -> bool:
    if node is None:
        return True
    return isinstance(node, ScalarNode) and node.style is None and node.value in ("", "~", "null", "Null", "NULL")


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index
