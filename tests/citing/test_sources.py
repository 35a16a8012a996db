"""A claim that names a paper names the place in it, or says that the idea is theirs and the proof is here."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("explanation", "how-to", "tutorials")

CITED = re.compile(r"(?P<name>[A-ZÖ][a-zé][\w'’-]*)(?:,? et al\.)?,?\s*\(?(?:19|20)\d\d\b(?!-\d)")
DATE = re.compile("January|February|March|April|May|June|July|August|September|October|November|December")
PLACE = re.compile(
    r"(?:Theorem|Lemma|Proposition|Corollary|Definition|Equation|equation|Algorithm|Appendix|[Ss]ection|chapter)s? "
    r"(?:\d|[IVX]+\b|[A-Z]\b)|Corollaries \d"
)
OURS = re.compile(r"\b(?:ideas?|proved|[Pp]roofs?|not used here)\b")
PROVED = re.compile(r"[\w-]+\.md#|docs/explanation/")


def without_place(text):
    """The citations of a text, each with what is around it, that have neither a number nor a word of `OURS` near."""
    bare = []
    for paragraph in re.split(r"\n\s*\n", text):
        line = " ".join(paragraph.split())
        for found in CITED.finditer(line):
            start, end = found.span()
            place = PLACE.search(line[max(0, start - 60) : end + 70])
            if (
                not DATE.fullmatch(found["name"])
                and not place
                and not OURS.search(line[max(0, start - 100) : end + 110])
            ):
                bare.append(line[max(0, start - 60) : end + 60])
    return bare


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_page_says_which_theorem_it_uses_or_that_it_proves_the_claim(folder):
    pages = sorted((ROOT / "docs" / folder).rglob("*.md"))
    assert pages
    bare = {str(page.relative_to(ROOT)): found for page in pages if (found := without_place(page.read_text()))}
    assert bare == {}, "give the number in the paper, or say 'the idea of ...' and prove the claim on the page"


def test_a_docstring_that_names_a_paper_as_its_source_names_the_place_or_our_proof():
    sources = []
    for path in sorted((ROOT / "ledgerwood").rglob("*.py")):
        for docstring in re.findall(r'"""(.*?)"""', path.read_text(), re.DOTALL):  # a parser would take seconds
            source = re.search(r"Source(?: of \w+)?: .*", " ".join(docstring.split()))
            if source and CITED.search(source[0]):
                sources.append((str(path.relative_to(ROOT)), source[0]))
    assert len(sources) > 20
    assert [each for each in sources if not PLACE.search(each[1]) and not PROVED.search(each[1])] == []


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("It holds (Miller 2011).", 1),
        ("It holds (Miller 2011, Theorem 3).", 0),
        ("It holds, as Miller (2011) shows in section IV-C.", 0),
        ("It holds (the idea of Miller and Jones 2011); it is proved below.", 0),
        ("It holds (Miller et al. 2011). " + "Something else follows. " * 9 + "It is proved below.", 1),
        ("It holds (Miller 2011).\n\nTheorem 3 is another.", 1),
        ("Figures of November 2026; a dataset=adult-2026.", 0),
    ],
)
def test_the_reader_of_citations_tells_them_apart(text, bare):
    assert len(without_place(text)) == bare
