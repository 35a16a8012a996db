"""The letters' commands run as they stand, and detect what the letters say."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ledgerwood.cli.commands import app
from ledgerwood.verification.errata import PAPERS, SPECIMENS, find

DOCS = Path(__file__).resolve().parents[3] / "docs"
LETTERS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((DOCS / "errata" / "letters").glob("*.md"))}
INDEX = LETTERS.pop("index")
STORED = {found["specimen"]: found for found in json.loads((DOCS / "errata.json").read_text())["findings"]}


def command_of(letter):
    (line,) = re.findall(r"^```sh\nledgerwood (errata .*)\n```$", LETTERS[letter], flags=re.MULTILINE)
    return shlex.split(line)


def specimens_of(letter):
    words = command_of(letter)
    assert words[1::2] == ["--only"] * len(words[1::2])
    return [find(name, SPECIMENS) for name in words[2::2]]


def test_each_of_the_five_papers_has_a_letter_and_the_index_has_all():
    assert set(PAPERS) - {"peers"} <= set(LETTERS)
    assert len(LETTERS) <= len(PAPERS) - 1 + 3
    assert re.findall(r"^(\w+) \| ", INDEX, flags=re.MULTILINE) == [
        *[paper for paper in PAPERS if paper != "peers"],
        *[letter for letter in LETTERS if letter not in PAPERS],
    ]


@pytest.mark.parametrize("letter", LETTERS)
def test_a_letter_is_short_and_names_errors_that_were_caught(letter):
    text = LETTERS[letter]
    assert len(text.split()) <= 480
    for part in ("Dear ", "To see them", "What would mend them", "smallest cop", "{ref}`The entries <errata-"):
        assert part in text or (part == "smallest cop" and "measured on the package itself" in text), part
    paper = letter if letter in PAPERS else "peers"
    for specimen in specimens_of(letter):
        assert specimen in PAPERS[paper]
        assert STORED[specimen.name]["caught"]


@pytest.mark.slow  # 3 to 15 s each: hundreds of thousands of outputs
@pytest.mark.parametrize("letter", LETTERS)
def test_the_command_of_a_letter_runs_and_detects_all_of_them(letter):
    result = CliRunner().invoke(app, [*command_of(letter), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [each["specimen"] for each in found["findings"]] == [specimen.name for specimen in specimens_of(letter)]
    assert all(each["caught"] for each in found["findings"])
