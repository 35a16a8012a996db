"""A strict reader of BibTeX."""

import re

import pytest


def entries_of(text):
    """The entries of a .bib file, {key: (kind, fields)}; anything that is not an entry or a comment is refused."""
    found, place = {}, 0
    while rest := text[place:].strip():
        place = len(text) - len(text[place:].lstrip())
        head = re.match(r"@([a-z]+)\{", rest)
        assert head, f"not an entry: {rest[:60]!r}"
        end = closing(text, place + head.end() - 1)
        body, place = text[place + head.end() : end], end + 1
        if head[1] == "comment":
            continue
        key, _, fields = body.partition(",\n")
        assert re.fullmatch(r"[a-z][a-z0-9]*", key), key
        assert key not in found, f"{key} twice"
        found[key] = (head[1], dict(field_of(line) for line in fields.strip("\n").splitlines()))
    return found


def closing(text, start):
    """The place of the brace that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError(f"no closing brace: {text[start : start + 60]!r}")


def field_of(line):
    match = re.fullmatch(r"  ([a-z]+) = \{(.*)\},", line)
    assert match, f"not a field: {line!r}"
    assert closing("{" + match[2] + "}", 0) == len(match[2]) + 1, f"braces do not match: {line!r}"
    return match[1], match[2]


@pytest.fixture
def parsed():
    return entries_of
