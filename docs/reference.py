"""Generate the reference pages from the code when the site is built: keys, components, columns, commands, Python.

A hook of MkDocs: it replaces `<!-- KIND: made from the code -->` in a page with text generated from the code, so that
the page cannot become outdated. `python docs/reference.py keys` prints the text for one KIND.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"<!-- (\w+): made from the code -->")
INTERNAL = ("help",)
SECTION = re.compile(r"a section: edgefl describe ([\w.\\]+)")  # in a table's cell, where \ escapes _
KIND = re.compile(r"edgefl list ([\w\\]+)")


def on_page_markdown(markdown: str, **about: Any) -> str:
    """Replace the marks in a page with generated text."""
    return MARK.sub(lambda mark: "\n".join(PAGES[mark[1]]()), markdown)


def on_page_content(html: str, page: Any, **about: Any) -> str:
    """Show functions under their public names, and types that carry command-line options as plain types."""
    if page.file.src_uri != "reference-python.md":
        return html
    import edgefl
    from edgefl.analysis.runs import choices

    functions = [found for name in edgefl.__all__ if inspect.isfunction(found := getattr(edgefl, name))]
    said = {found.__qualname__: found.__name__ for found in functions}
    for name, found in vars(choices).items():
        if get_origin(found) is Annotated:
            plain = inspect.formatannotation(get_args(found)[0])
            said[name] = escape(re.sub(r"\b(\w+\.)+(?=\w)", "", plain))
    return re.sub(r">(\w+)(?=</(?:span|code|autoref)>)", lambda word: f">{said.get(word[1], word[1])}", html)


def keys() -> Iterator[str]:
    """Write every key of a scenario: a table per section, with links between them."""
    from edgefl.commands.descriptions import sections

    for section, about, rows in sections():
        yield from [f"## {section} {{ #{_anchor(section)} }}", "", _plain(about), ""]
        yield from map(_linked, _table(("key", "meaning", "unit", "range", "default"), rows))


def _anchor(section: str) -> str:
    return section.replace(".", "-")


def _linked(row: str) -> str:
    """Replace the command in a table's cell, which suits a terminal, with a link to the section or kind."""

    def section(found: re.Match[str]) -> str:
        name = found[1].replace("\\", "").removeprefix("federations.")  # both have the same sections
        return f"section [{name}](#{_anchor(name)})"

    def kind(found: re.Match[str]) -> str:
        name = found[1].replace("\\", "")
        return f"[{name}](reference-components.md#{name})"

    return KIND.sub(kind, SECTION.sub(section, row))


def components() -> Iterator[str]:
    """Write every component with its parameters: a section per kind."""
    from edgefl.commands.descriptions import facts_of, listed
    from edgefl.config import registry
    from edgefl.config.component import parameters_of

    for kind in registry.KINDS:
        yield from [f"## {kind}", "", f"{registry.MEANINGS[kind].capitalize()}.", ""]
        meanings = dict(line.split("  ", 1) for line in listed(kind))
        for name in registry.names(kind):
            yield from [
                f"### {kind}/{name} {{ #{kind}-{name} }}",
                "",
                _plain(meanings.get(name, "").strip()),
                "",
            ]
            rows = facts_of(parameters_of(registry.get(kind, name)))
            if rows:
                yield from _table(("parameter", "meaning", "unit", "range", "default"), rows)


def columns() -> Iterator[str]:
    """Write every column of a run directory's tables: a section per table."""
    from edgefl.run_directory.columns import meanings

    for file, (about, meant) in meanings().items():
        yield from [f"## {file}", "", f"{about.capitalize()}.", ""]
        yield from _table(("column", "meaning"), [[f"`{name}`", text] for name, text in meant.items()])


def commands() -> Iterator[str]:
    """Write every command with its arguments and options."""
    import typer

    from edgefl.commands.cli import app

    yield from _commands(typer.main.get_command(app), "edgefl")


def _commands(command: Any, path: str) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner:
        for name, each in inner.items():
            yield from _commands(each, f"{path} {name}")
        return
    text, _, examples = inspect.cleandoc(command.help or "").partition("Examples:")
    yield from [f"## {path}", "", _plain(text.strip()), ""]
    rows = []
    for option in command.params:
        if option.name in INTERNAL:
            continue
        named = ", ".join(
            f"`{name}`" for name in (*option.opts, *option.secondary_opts) if name.startswith("-")
        )
        default = option.default
        shown = "" if default in (None, False, ()) or callable(default) else f"`{default}`"
        rows.append((named or f"`{option.metavar or option.name.upper()}`", option.help or "", shown))
    if rows:
        yield from _table(("", "meaning", "default"), rows)
    if examples.strip():
        yield from ["```bash", *filter(None, map(str.strip, examples.splitlines())), "```", ""]


def python() -> Iterator[str]:
    """Write a mark of mkdocstrings for each public name, and for the classes that the names return.

    mkdocstrings then writes signature, types, arguments, fields and methods, with links between them.
    """
    import edgefl
    from edgefl import analysis
    from edgefl.analysis.measures.results import Sweep
    from edgefl.run.views import Lines, Page, Picture

    public = {f"edgefl.{name}": getattr(edgefl, name) for name in edgefl.__all__}
    functions = {name: found for name, found in public.items() if inspect.isfunction(found)}
    classes = {name: found for name, found in public.items() if inspect.isclass(found)}
    returned = {
        **{f"edgefl.analysis.{one.__name__}": one for one in (analysis.Comparison, analysis.Report)},
        **{one.__name__: one for one in (Sweep, Picture, Page, Lines)},
    }
    parts = (("Functions", functions), ("Classes", classes), ("Classes of what functions return", returned))
    for title, names in parts:
        yield from [f"## {title}", ""]
        for name, found in names.items():
            options = f"heading: {name}"
            if found is edgefl.Scenario:  # its other methods are internal
                options += (
                    f", members: [{', '.join([*found.model_fields, 'with_'])}], show_if_no_docstring: true"
                )
            yield from [f"::: {found.__module__}.{found.__qualname__}", f"    options: {{{options}}}", ""]


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "keys": keys,
    "components": components,
    "columns": columns,
    "commands": commands,
    "python": python,
}


def _table(head: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(_cell(text) for text in row)} |"
    yield ""


def _cell(text: str) -> str:
    return " ".join(_plain(text).split()).replace("|", "\\|")


def _plain(text: str) -> str:
    """Escape text outside code so that it is not read as HTML or Markdown."""
    parts = re.split(r"(`[^`]*`)", text)  # code stays as it is
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"([<*_\[\]{}])", lambda found: f"\\{found[1]}", parts[place]).replace(
            "\\<", "&lt;"
        )
    return "".join(parts)


if __name__ == "__main__":
    print("\n".join(PAGES[sys.argv[1]]()))
