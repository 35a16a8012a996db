"""Every reference is BibTeX that a strict reader takes, and says what CITATION.cff says of the library itself."""

import re
from pathlib import Path

import pytest

import ledgerwood as lw
from ledgerwood.citing.cite import library
from ledgerwood.errors import InvalidParameter
from ledgerwood.references import Citations, Reference, accounting, auditing, mechanisms, systems

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {
    "article": {"author", "title", "journal", "year"},
    "inproceedings": {"author", "title", "booktitle", "year"},
    "misc": {"author", "title", "year"},
}
CATALOGUE = {
    name: value
    for module in (systems, accounting, mechanisms, auditing)
    for name, value in vars(module).items()
    if isinstance(value, Reference)
}


@pytest.mark.parametrize("reference", CATALOGUE.values(), ids=CATALOGUE)
def test_each_entry_parses_in_ascii_and_has_what_its_kind_needs(reference, parsed):
    assert reference.bibtex.isascii()
    ((key, (kind, fields)),) = parsed(reference.bibtex).items()
    assert (key, kind) == (reference.key, reference.kind)
    assert NEEDED[kind] <= fields.keys()
    assert fields["year"] == str(reference.year)
    assert len(fields["author"].split(" and ")) == len(reference.authors)
    if kind == "misc":
        assert fields["eprint"], "a preprint needs its number, or it cannot be found"


def test_keys_name_the_first_author_and_the_year_and_differ():
    keys = [reference.key for reference in CATALOGUE.values()]
    assert len(set(keys)) == len(keys)
    for reference in CATALOGUE.values():
        family = reference.authors[0].split(",")[0].replace("\N{LATIN SMALL LETTER E WITH ACUTE}", "e").lower()
        assert reference.key.startswith(f"{family}{reference.year}"), reference.key


def test_the_reader_of_these_tests_refuses_what_is_no_bibtex(parsed):
    good = systems.LI_2020.bibtex
    for bad in (good[:-1], good.replace("year = {2020}", "year = {2020"), "text\n" + good, good + "\n" + good):
        with pytest.raises(AssertionError):
            parsed(bad)


def test_letters_beyond_ascii_are_spelled_for_tex():
    assert r"author = {Vos, Dani{\"e}l and" in systems.VOS_2023.bibtex
    assert r"Cl{\'e}ment" in accounting.CANONNE_2020.bibtex  # codespell:ignore ment
    assert r"Tram{\`e}r" in auditing.NASR_2023.bibtex


@pytest.mark.parametrize(
    ("change", "bound"),
    [
        ({"key": "Dong2022"}, "lower-case"),
        ({"kind": "book"}, "article"),
        ({"authors": ()}, "at least one"),
        ({"title": " "}, "not empty"),
        ({"year": 22}, "1900"),
        ({"venue": ""}, "given of an article"),
        ({"kind": "misc"}, "empty of 'misc'"),
        ({"eprint": "arXiv:1"}, "1702.07476"),
        ({"doi": "doi.org/x"}, "10.1000/182"),
        ({"doi": "10.1000/\N{LATIN SMALL LETTER E WITH ACUTE}"}, "10.1000/182"),
        ({"authors": ("",)}, "none of them empty"),
        ({"pages": "1}-2"}, "no spelling"),
        ({"title": "a {brace}"}, "no spelling"),
        ({"title": "\N{GREEK SMALL LETTER EPSILON}"}, "no spelling"),
    ],
)
def test_a_reference_that_bibtex_could_not_read_is_refused(change, bound):
    given = {"key": "a2000b", "kind": "article", "authors": ("A, B",), "title": "t", "year": 2000, "venue": "v"}
    assert Reference(**given).bibtex.startswith("@article{a2000b,")
    with pytest.raises(InvalidParameter, match=re.escape(bound)):
        Reference(**given | change)


def test_the_librarys_own_entry_is_that_of_the_citation_file():
    said = (ROOT / "CITATION.cff").read_text()
    own = library()
    assert f"version: {lw.__version__}\n" in said
    assert own.note.endswith(lw.__version__)
    assert f"- name: {own.authors[0]}\n" in said
    assert f"title: {own.title}\n" in said


def test_one_key_for_two_references_is_refused():
    one = Reference(key="a2000b", kind="misc", authors=("A, B",), title="t", year=2000)
    other = Reference(key="a2000b", kind="misc", authors=("A, B",), title="u", year=2000)
    assert Citations(references=(one, one)).keys == ("a2000b",)
    with pytest.raises(InvalidParameter, match="names two references"):
        Citations(references=(one, other))


def test_notes_are_comments_of_the_file_whatever_they_hold(parsed):
    one = Reference(key="a2000b", kind="misc", authors=("A, B",), title="t", year=2000)
    text = Citations(references=(one,), notes=("a } brace\n and @misc{x,", "b", "b")).bibtex
    assert list(parsed(text)) == ["a2000b"]
    assert text.count("@comment") == 2
