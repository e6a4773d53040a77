"""Translate PyYAML's errors into plain messages, and find the line that the user has to change.

A parser reports where parsing failed. If a bracket is not closed or a line is indented wrongly, the line to change is
usually above that place.
"""

import re

import yaml

from edgefl.errors import clipped, quoted

Fault = tuple[int, str]  # line, counted from 1, and description of the fault

_REMEDIES = {
    "found undefined tag handle": "tags such as !x are not supported; write the plain value",
    "unknown escape character": "in double quotes a backslash begins an escape; write \\\\, or use single quotes",
    "expected alphabetic or numeric": "a value that begins with & or * must be in quotes",
    "found ']'": "this bracket was never opened",
    "found '}'": "this bracket was never opened",
    "found '-'": "a list item among keys: is it indented too little or too much?",
    "found ':'": "a key is missing before the colon",
    "found '?'": "a key among list items: is it indented too little or too much?",
    "found '<scalar>'": "text that is neither 'key: value' nor part of the value above",
}
# a key without its colon: `seed 1`, `seed:1`, `learning` or `local {batch: 16}`
_BARE = re.compile(r"[\s-]*([A-Za-z_][\w.-]*)(?::(?=[^\s:/])|\s+|(?=[\[{])|$)(.*)")
BRACKET = re.compile(r"[\s-]*[A-Za-z_][\w.-]*\s*[\[{]")  # a key's beginning, up to a bracket


def explain(error: Exception, text: str, loader: yaml.SafeLoader, last: yaml.ScalarEvent | None) -> Fault:
    """Return the line of a YAML fault, counted from 1, and a description of the fault.

    Args:
        error: the error that PyYAML's loader raised.
        last: the scalar that was read last, or None if a different part was read last.
    """
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem is None:
        return loader.line + 1, "not valid YAML: a number or escape out of range"
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else loader.line + 1
    problem = error.problem
    lines = text.splitlines()
    if "'\\t'" in problem:
        return line, "a tab, which YAML does not allow here; use spaces"
    ends = "expected ','" in problem or "<stream end>" in problem
    if ends and loader.flow_level > 0 and loader.marks:
        opened = loader.marks[-1]
        bracket = text[opened.index : opened.index + 1]
        lacks = (
            f"the {bracket} opened in this line is not closed by line {line}, or a comma before it is missing"
        )
        return opened.line + 1, f"{lacks}{_near(lines, line)}"
    if (
        error.context
        and "quoted scalar" in error.context
        and "end of stream" in problem
        and error.context_mark
    ):
        return error.context_mark.line + 1, "the quote opened here is never closed"
    if error.context == "while scanning a simple key" and error.context_mark:
        wrong = error.context_mark.line + 1
        return wrong, colon_missing(lines[wrong - 1])
    first = last.start_mark.line + 1 if last and last.start_mark else line
    if last and last.end_mark and last.style in ("'", '"') and first < last.end_mark.line + 1 == line:
        return first, f"the quote opened here is closed only in line {line}"
    # a line of text that is followed by a key is itself a key without its colon
    key_follows = "mapping values" in problem or "found '<block mapping start>'" in problem
    if key_follows and last and last.start_mark and not last.style and first < line:
        text_before = lines[first - 1][: last.start_mark.column].strip(" -")
        if not text_before:
            return first, colon_missing(lines[first - 1])
    if "mapping values" in problem and mark and ": " in lines[line - 1][: mark.column]:
        return line, _second_colon(lines[line - 1])
    if "mapping values" in problem or "<block end>" in problem or "<document start>" in problem:
        step = _out_of_step(lines, line)
        if step:
            return step
    for words, remedy in _REMEDIES.items():
        if words in problem:
            return line, f"{remedy}{_near(lines, line)}"
    if "cannot start any token" in problem:
        return line, f"a value that begins like this must be in quotes{_near(lines, line)}"
    return line, f"{problem}{_near(lines, line)}"


def colon_missing(text: str) -> str:
    """Return the correction of a line with a key that lacks its colon, or the space after the colon."""
    if bare := _BARE.match(re.sub(r"\s+#.*", "", text)):
        key, value = bare.groups()
        return f"a key needs a colon and a space after it: write {quoted(f'{key}: {value}'.strip())}"
    return f"a key needs a colon and a space after it, as in 'lr: 0.1', but this is {quoted(text.strip())}"


def _second_colon(text: str) -> str:
    """Return the remedies for `devices: count: 4` or `name: my: run`: braces for nested keys, quotes for text."""
    key, _, value = text.strip().partition(": ")
    if BRACKET.match(key):
        return colon_missing(text)
    key, value = clipped(key), clipped(value)
    write = f"write {key}: {{{value}}} if keys are nested, or {key}: '{value}' if it is text"
    return f"the value contains a second ': '; {write}"


def _near(lines: list[str], line: int) -> str:
    here = lines[line - 1].strip() if line <= len(lines) else ""
    return f", here {quoted(here)}" if here else ""


def _spaces(number: int) -> str:
    return f"{number} space{'s' * (number != 1)}"


def _out_of_step(lines: list[str], line: int) -> Fault | None:
    """Find the line that is not indented like its block, given the line at which the parser noticed the mistake.

    Of two adjacent indentations, the one with fewer lines is assumed to be wrong.
    """
    indents = [
        (number, len(text) - len(text.lstrip(" ")))
        for number, text in enumerate(lines, start=1)
        if text.strip() and not text.lstrip().startswith("#")
    ]
    here = next((k for k, (number, _) in enumerate(indents) if number == line), 0)
    if not here:
        return None
    own, level = indents[here][1], indents[here - 1][1]
    first = here
    while first and indents[first - 1][1] > own:
        first -= 1
    if first < here:  # compare a line that is indented less than the line above with the block that ends here
        level = min(indent for _, indent in indents[first:here])
    else:
        while first and indents[first - 1][1] >= level:
            first -= 1
    if level == own:
        return None
    above = [number for number, indent in indents[first:here] if indent == level]
    below = []
    for number, indent in indents[here:]:
        if indent < own:
            break
        below += [number] if indent == own else []
    if len(above) < len(below):
        return above[0], f"this line is indented by {_spaces(level)}, lines below it by {own}"
    return line, f"this line is indented by {_spaces(own)}, line {above[-1]} by {level}"
