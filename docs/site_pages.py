"""What mkdocs.yml's hooks do: pages that lie outside of docs/ become part of the site, and links to them lead there."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]

# Pages of the repository, and where the site has them. A directory stands for the page that lists it.
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "README.md": "index.md",
    "docs/decisions": "internals/index.md",
    "docs": "index.md",
}
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside of docs/."""
    for source, uri in OUTSIDE.items():
        if source.endswith(".md") and uri != "index.md":
            files.append(File.generated(config, uri, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to pages of the site; one to another file of the repository becomes its text."""
    uri = page.file.src_uri
    source = next((path for path, there in OUTSIDE.items() if there == uri and there != "index.md"), None)
    if uri.startswith("internals/"):
        markdown, source = markdown.replace("<!-- decisions -->", _decisions()), None
    return _LINK.sub(lambda link: _link(link, source or f"docs/{uri}", uri), markdown)


def _link(link: re.Match[str], source: str, uri: str) -> str:
    path, mark, anchor = link[2].partition("#")
    if not path or ":" in path:
        return link[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    # Whether a page of docs/ exists is asked by mkdocs.
    there = OUTSIDE.get(target) or (target.removeprefix("docs/") if re.match(r"docs/.+\.md$", target) else None)
    if there:
        return f"[{link[1]}]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{mark}{anchor})"
    return link[1] if (ROOT / target).exists() else link[0]


def _decisions() -> str:
    """Return a list of docs/decisions, by the heading of each."""
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    heads = {page.name: page.read_text().partition("\n")[0].lstrip("# ") for page in pages}
    return "\n".join(f"- [{head}](../decisions/{name})" for name, head in heads.items())
