"""Renames identifiers by the map in renames.toml, and proves that rendered SQL changed by that map alone.

`python tests/renames.py` lists what the map would change in the tree, and `--apply` changes it; to apply it again
changes nothing. `--check <commit>` applies the map to the golden SQL of that commit, and compares the result with the
golden SQL of the tree, byte for byte.
"""

from __future__ import annotations

import argparse
import functools
import io
import keyword
import re
import subprocess
import sys
import textwrap
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
MAP = Path(__file__).with_suffix(".toml")
GOLDEN = "tests/sql/"
_WIDTH = 120
# What the map is applied to: each kind of file has identifiers in places of its own.
TREES = ("macros", "models", "tests", "docs", "ingestion", "demo", "benchmarks")
SUFFIXES = (".sql", ".yml", ".py", ".md")
# The map itself, what tests it, what tells of old names, and the golden SQL, which `make golden` writes.
LEFT_ALONE = ("tests/renames.", "tests/unit/test_renames.py", "docs/decisions/0040-", GOLDEN, "tests/data/")


class WrongMap(ValueError):
    """The map cannot be applied twice, or has one name with two meanings."""


class Piece(NamedTuple):
    """A part of a text. `kind`: code, string or comment (of Jinja), sql, quoted, literal or remark (of SQL)."""

    kind: str
    text: str
    macro: str


@dataclass(frozen=True)
class Names:
    """The names that hold in one place.

    `variables`: what Jinja or Python calls its variables and arguments; `keys`: keys of dicts and attributes.
    """

    variables: Mapping[str, str]
    keys: Mapping[str, str]


class Renames:
    """The map. `macros`: names of macros and their files; `sql`: names in rendered SQL; `scoped`: those of a place."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.macros: dict[str, str] = dict(given.get("macros", {}))
        self.sql: dict[str, str] = dict(given.get("sql", {}))
        self.python: dict[str, str] = dict(given.get("python", {}))
        self.scoped: list[dict[str, Any]] = list(given.get("scoped", []))
        # Tests that quote passages of macros.
        self.quoting: list[str] = list(given.get("quoting", []))
        # The longest first: a phrase may be a part of another.
        self.phrases = sorted(given.get("phrases", []), key=lambda phrase: -len(phrase["old"]))
        self._old_macros = {new: old for old, new in self.macros.items()}
        self._refuse_chains()

    @property
    def number(self) -> dict[str, int]:
        """How many names of each kind the map has."""
        kinds = ("variables", "keys", "python")
        scoped = {kind: sum(len(entry.get(kind, {})) for entry in self.scoped) for kind in kinds}
        return {
            "macros": len(self.macros), "sql": len(self.sql) + len(self.phrases), "variables": scoped["variables"],
            "keys": scoped["keys"], "python": len(self.python) + scoped["python"],
        }  # fmt: skip

    def _refuse_chains(self) -> None:
        everywhere = {**self.macros, **self.python}
        groups = [
            self.macros,
            self.sql,
            self.python,
            *({**everywhere, **e.get(k, {})} for e in self.scoped for k in e if k != "in"),
        ]
        for names in groups:
            if chained := sorted(new for new in names.values() if new in names):
                raise WrongMap(f"new names that are old ones too: {', '.join(chained)}")
            if wrong := [new for new in names.values() if not new.isidentifier() or keyword.iskeyword(new)]:
                raise WrongMap(f"no identifiers: {', '.join(wrong)}")
        if twice := sorted({new for new in self.macros.values() if [*self.macros.values()].count(new) > 1}):
            raise WrongMap(f"macros that would have one name: {', '.join(twice)}")
        for phrase in self.phrases:
            if _phrase(phrase["old"]).search(phrase["new"]):
                raise WrongMap(f"a phrase that is in what becomes of it: {phrase['old']!r}")

    # --- places ---

    def names(self, kind: str, path: str, macro: str = "") -> dict[str, str]:
        """Return the variables, keys or Python names that hold in a file, and in a macro of it."""
        found: dict[str, str] = {}
        for entry in self.scoped:
            if any(self._covers(place, path, macro) for place in entry["in"]):
                found |= entry.get(kind, {})
        return found

    def _covers(self, place: str, path: str, macro: str) -> bool:
        file, _, of = place.partition(":")
        if of and of not in (macro, self._old_macros.get(macro)):
            return False
        return path.startswith(file) if file.endswith("/") else file in (path, _renamed(path, self._old_macros))

    def new_path(self, path: str) -> str:
        """Return the path of a file once it has the new name of its macro."""
        return _renamed(path, self.macros)

    # --- texts ---

    def applied(self, path: str, text: str) -> str:
        """Return the text of a file under the map."""
        phrases = [phrase for phrase in self.phrases if self._holds(phrase, path)]
        if path.endswith(".sql"):
            return self._macro_file(path, text, phrases)
        for phrase in phrases:
            text = _phrase(phrase["old"]).sub(lambda _, new=phrase["new"]: new, text)
        if path.endswith(".py"):
            return self._python_file(path, text)
        text = _words(_words(text, self.macros), self._distinct)
        return self._yaml_file(path, text) if path.endswith(".yml") else text

    def golden(self, text: str) -> str:
        """Return golden SQL under the map."""
        for phrase in self.phrases:
            if phrase.get("golden", True):
                text = _phrase(phrase["old"]).sub(lambda _, new=phrase["new"]: new, text)
        return "".join(
            _words(piece.text, self.sql) if piece.kind == "sql" else piece.text for piece in pieces(text, jinja=False)
        )

    def _holds(self, phrase: Mapping[str, Any], path: str) -> bool:
        places = phrase.get("in")
        # Without a place, a phrase is SQL of macros, wherever their text stands.
        return (
            any(self._covers(place, path, "") for place in places) if places else path.startswith(("macros/", "tests/"))
        )

    @functools.cached_property
    def _distinct(self) -> dict[str, str]:
        """The names of SQL that are no words of English: they are renamed in sentences too."""
        return {old: new for old, new in self.sql.items() if "_" in old}

    def _macro_file(self, path: str, text: str, phrases: list[dict[str, Any]]) -> str:
        parts = re.split(r"({#.*?#})", text, flags=re.S)
        for place, part in enumerate(parts):
            for phrase in phrases if not part.startswith("{#") else []:
                part = _phrase(phrase["old"]).sub(lambda _, new=phrase["new"]: new, part)
            parts[place] = part
        return "".join(self._piece(path, piece) for piece in pieces("".join(parts)))

    def _piece(self, path: str, piece: Piece) -> str:
        text = _words(piece.text, self.macros)
        variables, keys = (self.names(kind, path, piece.macro) for kind in ("variables", "keys"))
        if piece.kind == "code":
            return _words(_sub(_keys(text, keys), variables, r"(?<![\w.])"), self._distinct)
        text = _words(text, self._distinct)
        if piece.kind == "string":
            return _in_string(text, keys, self.sql, variables)
        if piece.kind == "sql":
            return _words(text, self.sql)
        if piece.kind == "comment":
            # In braces stand the keys of a dict.
            text = re.sub(_BRACES, lambda found: _words(found[0], self.sql | variables | keys), text)
            text = _in_sentence(text, self.sql | keys | variables)
            return _refilled(text) if text != piece.text else text
        return text

    def _yaml_file(self, path: str, text: str) -> str:
        macro, lines = "", []
        for line in text.splitlines(keepends=True):
            macro = found[1] if (found := re.match(r"  - name: (\w+)", line)) else macro
            variables, keys = (self._names_of_macro(kind, macro) for kind in ("variables", "keys"))
            line = re.sub(r"(?<=- {name: )\w+", lambda m, names=variables: names.get(m[0], m[0]), line)
            line = re.sub(
                _BRACES, lambda m, names=keys: _words(m[0], names) if "description:" not in m[0] else m[0], line
            )
            lines.append(_in_sentence(line, keys | variables))
        return "".join(lines)

    def _names_of_macro(self, kind: str, macro: str) -> dict[str, str]:
        file = _file_of(macro) or _file_of(self._old_macros.get(macro, ""))
        return self.names(kind, file, macro) if file else {}

    def _python_file(self, path: str, text: str) -> str:
        before, names, result = "", self._names_of_python(path, ""), []
        for kind, part in _python_pieces(text):
            if kind == "name":
                names = self._names_of_python(path, part) if before == "def" else names
                part, before = (self.macros if before == "macros" else names).get(part, part), part
            elif kind == "comment":
                part = _in_sentence(self._macros_in_text(part), names)
            elif kind == "string":
                part = _in_python_string(self._macros_in_text(part), names)
                part = self._in_test_string(path, part) if path.startswith("tests/") else part
            result.append(part)
        return "".join(result)

    def _names_of_python(self, path: str, function: str) -> dict[str, str]:
        return {**self.python, **self.names("python", path, function)}

    def _macros_in_text(self, text: str) -> str:
        """Of macros, Python has the public names; the names that begin with _ are also names of Python's."""
        public = {old: new for old, new in self.macros.items() if not old.startswith("_")}
        text = _sub(_words(text, public), self.macros, r"(?<=reconcile\.)")
        return re.sub(r"`[^`\n]+`", lambda found: _words(found[0], self.macros), text)

    def _in_test_string(self, path: str, text: str) -> str:
        """Tests quote SQL, and passages of macros where they plant bugs."""
        text, keys = _words(text, self._distinct), self.names("keys", path)
        if path not in self.quoting:
            return _in_string(text, keys, {}, {}, whole=keys)
        if "reconcile." in text:
            quote = re.match(r"\w*(?:'''|\"\"\"|'|\")", text)[0]  # type: ignore[index]
            text = quote + _outside_strings(text[len(quote) :], self.names("variables", path))
        return _in_string(text, keys, self.sql, {}, whole=keys)


def _renamed(path: str, macros: Mapping[str, str]) -> str:
    folder, slash, name = path.rpartition("/")
    stem, dot, suffix = name.partition(".")
    is_macro = path.startswith("macros/") and suffix == "sql"
    return f"{folder}{slash}{macros.get(stem, stem)}{dot}{suffix}" if is_macro else path


# --- texts in their pieces --------------------------------------------------------------------------------------------

_JINJA = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}", re.S)
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_DEFINITION = re.compile(r"{%-?\s*(?:macro|materialization|test)\s+(\w+)")


def pieces(text: str, jinja: bool = True) -> Iterator[Piece]:
    """Return the pieces of a text, which together are the text. A comment before a macro is of the macro."""
    macro, kind, end, waiting = "", "sql", 0, list[Piece]()
    for found in _JINJA.finditer(text) if jinja else ():
        sql, kind = _sql_pieces(text[end : found.start()], kind)
        end = found.end()
        if found[0].startswith("{#"):
            waiting += [Piece(*piece, macro) for piece in [*sql, ("comment", found[0])]]
            continue
        if defined := _DEFINITION.match(found[0]):
            macro = defined[1]
            waiting = [piece._replace(macro=macro) if piece.kind == "comment" else piece for piece in waiting]
        yield from waiting
        yield from (Piece(*piece, macro) for piece in [*sql, *_code_pieces(found[0])])
        waiting = []
    yield from waiting
    yield from (Piece(*piece, macro) for piece in _sql_pieces(text[end:], kind)[0])


def _code_pieces(text: str) -> Iterator[tuple[str, str]]:
    end = 0
    for found in _STRING.finditer(text):
        yield "code", text[end : found.start()]
        yield "string", found[0]
        end = found.end()
    yield "code", text[end:]


# In each kind of SQL: where it ends, and the kind that follows.
_ENDS = {
    "sql": (re.compile(r"'|--|`"), {"'": "literal", "--": "remark", "`": "quoted"}),
    "literal": (re.compile(r"\\.|'", re.S), {"'": "sql"}),
    "quoted": (re.compile(r"`"), {"`": "sql"}),
    "remark": (re.compile(r"\n"), {"\n": "sql"}),
}


def _sql_pieces(text: str, kind: str) -> tuple[list[tuple[str, str]], str]:
    """Return the pieces of SQL that begins as `kind`, and the kind with which it ends."""
    result, begin, at = [], 0, 0
    while found := _ENDS[kind][0].search(text, at):
        at = found.end()
        if following := _ENDS[kind][1].get(found[0]):
            result.append((kind, text[begin:at]))
            kind, begin = following, at
    return [*result, (kind, text[begin:])], kind


def _python_pieces(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    end = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = {tokenize.NAME: "name", tokenize.STRING: "string", tokenize.COMMENT: "comment"}.get(token.type)
        if kind:
            start = starts[token.start[0] - 1] + token.start[1]
            yield "other", text[end:start]
            yield kind, token.string
            end = starts[token.end[0] - 1] + token.end[1]
    yield "other", text[end:]


# --- names in a piece -------------------------------------------------------------------------------------------------


@functools.cache
def _phrase(old: str) -> re.Pattern[str]:
    first, last = (r"\b" if re.match(r"\w", edge) else "" for edge in (old[0], old[-1]))
    return re.compile(first + re.escape(old) + last)


@functools.cache
def _one_of(names: tuple[str, ...], before: str, behind: str) -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(map(re.escape, names))}){behind}")


def _sub(text: str, names: Mapping[str, str], before: str = r"\b", after: str = r"\b") -> str:
    return _one_of(tuple(names), before, after).sub(lambda found: names[found[0]], text) if names else text


def _words(text: str, names: Mapping[str, str]) -> str:
    return _sub(text, names)


def _keys(code: str, keys: Mapping[str, str]) -> str:
    """Rename attributes: `range.said`."""
    return _sub(code, keys, r"(?<=[\w)\]]\.)")


def _in_string(
    text: str, keys: Mapping[str, str], sql: Mapping[str, str], variables: Mapping[str, str],
    whole: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """Rename what is an identifier in a string: all of it, what touches a dot, or what follows `as`."""
    whole = {**sql, **variables, **keys} if whole is None else whole
    prefix, quote = re.match(r"(\w*)('''|\"\"\"|'|\")", text).groups()  # type: ignore[union-attr]
    content = text[len(prefix) + len(quote) : -len(quote)]
    if content in whole:
        content = whole[content]
    else:
        content = _sub(content, sql, r"(?<![\w.])", r"(?=\.(?:[\w`{]|$))")
        content = _sub(content, sql, r"(?<=\w\.)")
        content = _sub(content, sql, r"(?<=\bas )", r"(?=$|[\n,);])")
        content = _sub(content, keys, r"(?<=\w\.)", r"$")
    return f"{prefix}{quote}{content}{quote}"


_BRACES = re.compile(r"{\w+(?:[,:]\s[^{}]*)?}")


def _in_sentence(text: str, names: Mapping[str, str]) -> str:
    """Rename what is an identifier in a comment: what stands between backticks."""
    return re.sub(r"`[^`\n]+`", lambda found: _words(found[0], names), text)


def _refilled(comment: str) -> str:
    """Return a comment of Jinja with its lines filled anew, if one has become too long."""
    lines = comment.split("\n")
    if max(map(len, lines)) <= _WIDTH or any(not line.startswith("    ") for line in lines[1:] if line):
        return comment
    paragraphs = re.split(r"\n\s*\n", comment)
    return "\n\n".join(
        textwrap.fill(
            " ".join(paragraph.split()), _WIDTH, initial_indent="" if number == 0 else "    ",
            subsequent_indent="    ", break_long_words=False, break_on_hyphens=False,
        )
        for number, paragraph in enumerate(paragraphs)
    )  # fmt: skip


def _in_python_string(text: str, names: Mapping[str, str]) -> str:
    prefix = re.match(r"\w*", text)[0].lower()  # type: ignore[index]
    text = _in_sentence(text, names)
    if "f" not in prefix:
        return text
    return re.sub(r"(?<!{)(?:{{)*{(?!{)[^{}]*}", lambda found: _outside_strings(found[0], names), text)


def _outside_strings(code: str, names: Mapping[str, str]) -> str:
    return "".join(_words(part, names) if kind == "code" else part for kind, part in _code_pieces(code))


# --- the tree ---------------------------------------------------------------------------------------------------------


@functools.cache
def _files_of_macros() -> dict[str, str]:
    return {
        macro: str(file.relative_to(ROOT))
        for file in sorted((ROOT / "macros").glob("**/*.sql"))
        for macro in re.findall(r"{%-?\s*macro\s+(\w+)", file.read_text())
    }


def _file_of(macro: str) -> str | None:
    return _files_of_macros().get(macro)


def files() -> list[str]:
    """Return the paths that the map is applied to."""
    found = [
        str(path.relative_to(ROOT))
        for tree in TREES
        for path in sorted((ROOT / tree).glob("**/*"))
        if path.suffix in SUFFIXES and path.is_file()
    ]
    found += [name for name in ("README.md", "CONTRIBUTING.md") if (ROOT / name).exists()]
    return [path for path in found if not path.startswith(LEFT_ALONE)]


def changes(renames: Renames) -> dict[str, tuple[str, str]]:
    """Return the files that the map changes: their new path, and their new text."""
    result = {}
    for path in files():
        old = (ROOT / path).read_text()
        new, to = renames.applied(path, old), renames.new_path(path)
        if (new, to) != (old, path):
            result[path] = (to, new)
    return result


def clashes(renames: Renames) -> list[str]:
    """Return the new names of variables that a file or macro with the old name has already, for something else."""
    found = []
    for path in files():
        text = (ROOT / path).read_text()
        if path.endswith(".sql") and path.startswith("macros/"):
            places = _code_of_macros(text)
            found += [
                f"{path}:{macro}: {c}"
                for macro, code in places.items()
                for c in _clash(code, renames.names("variables", path, macro))
            ]
        elif path.endswith(".py"):
            found += [
                f"{path}:{name}: {c}"
                for name, code in _code_of_functions(text).items()
                for c in _clash(code, renames._names_of_python(path, name))
            ]
    return found


def _clash(code: set[str], names: Mapping[str, str]) -> list[str]:
    return [f"{old} -> {new}" for old, new in names.items() if old in code and new in code]


def _code_of_macros(text: str) -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for piece in pieces(text):
        if piece.kind == "code":
            result.setdefault(piece.macro, set()).update(re.findall(r"(?<![\w.])[a-z_]\w*", piece.text))
    return result


def _code_of_functions(text: str) -> dict[str, set[str]]:
    result, function, before, dotted = {"": set()}, "", "", False
    for kind, part in _python_pieces(text):
        if kind == "name":
            function = part if before == "def" else function
            if not dotted:
                result.setdefault(function, set()).add(part)
            before = part
        dotted = part.endswith(".") if part else dotted
    return result


def apply(renames: Renames) -> int:
    """Write the changed files, and return how many there are. Raises WrongMap if a name would mean two things."""
    if found := clashes(renames):
        raise WrongMap("new names that are there already: " + "; ".join(found))
    changed = changes(renames)
    for path, (to, text) in changed.items():
        if to != path:
            (ROOT / path).rename(ROOT / to)
        (ROOT / to).write_text(text)
    return len(changed)


# --- golden SQL -------------------------------------------------------------------------------------------------------

_DIGEST = re.compile(r"(?<='reconcile\.definition' = ')[0-9a-f]{32}(?=')")
_ELSEWHERE = re.compile(r"{the SELECT of ([\w/.]+)}")


def compared(renames: Renames, old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return for each golden file what became of it: `same`, `renamed`, or how it differs from what the map gives."""
    under_map = {path: renames.golden(text) for path, text in old.items()}
    result = {path: "only in the tree" for path in new.keys() - old.keys()}
    for path, text in old.items():
        if path not in new:
            result[path] = "only in the commit"
        elif _without_digests(under_map[path]) != _without_digests(new[path]):
            result[path] = "differs"
        else:
            result[path] = _wrong_digest(text, new[path], old, under_map) or (
                "same" if new[path] == text else "renamed"
            )
    return result


def _without_digests(text: str) -> str:
    return _DIGEST.sub("<digest>", text)


def _wrong_digest(
    old: str, new: str, all_old: Mapping[str, str], under_map: Mapping[str, str]
) -> str | None:  # fmt: skip
    """A digest is of a view's text: it must change if the map changes the text, and otherwise stay."""
    for before, after in zip(old.split(";\n\n"), new.split(";\n\n"), strict=True):
        elsewhere = [f"{GOLDEN}{path}" for path in _ELSEWHERE.findall(before)]
        is_renamed = _without_digests(before) != _without_digests(after) or any(
            under_map[path] != all_old[path] for path in elsewhere
        )
        digests, digests_after = _DIGEST.findall(before), _DIGEST.findall(after)
        if digests and (digests != digests_after) != is_renamed:
            return (
                "a digest stays, and its view's text does not"
                if is_renamed
                else ("a digest changes, and its view's text does not")
            )
    return None


def check(renames: Renames, commit: str) -> int:
    """Print how the golden SQL of the tree differs from that of a commit under the map; return the exit code."""
    listed = _git("ls-tree", "-r", "--name-only", commit, GOLDEN).splitlines()
    old = {path: _git("show", f"{commit}:{path}") for path in listed}
    new = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / GOLDEN).glob("**/*.sql"))}
    result = compared(renames, old, new)
    wrong = {path: why for path, why in result.items() if why not in ("same", "renamed")}
    counts = {kind: sum(why == kind for why in result.values()) for kind in ("same", "renamed")}
    digests = sum(
        before != after
        for path in old.keys() & new.keys()
        for before, after in zip(_DIGEST.findall(old[path]), _DIGEST.findall(new[path]), strict=False)
    )
    print(
        f"{len(old)} golden files at {commit}: {counts['same']} are the same, {counts['renamed']} are equal under the "
        f"map ({digests} digests of views follow their text), {len(wrong)} differ"
    )
    for path, why in sorted(wrong.items()):
        print(f"  {path}: {why}")
    return 1 if wrong else 0


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apply", action="store_true", help="change the tree")
    parser.add_argument("--check", metavar="COMMIT", help="compare the golden SQL with that of a commit under the map")
    options = parser.parse_args()
    renames = Renames(tomllib.loads(MAP.read_text()))
    if options.apply:
        print(f"{apply(renames)} files changed, by {sum(renames.number.values())} names: {renames.number}")
    if options.check:
        return check(renames, options.check)
    if not options.apply:
        for path, (to, _) in changes(renames).items():
            print(path if to == path else f"{path} -> {to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
