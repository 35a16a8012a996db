"""Model cards: what they must say, and that no text from outside becomes markup in them."""

import dataclasses
import math
import re
import shlex
from html.parser import HTMLParser

import numpy as np
import pytest
import yaml
from markdown_it import MarkdownIt
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading import model_card
from ledgerwood.reading.cards import contents
from ledgerwood.reading.cards.markdown import escaped
from ledgerwood.trainers import PrivateSearch, PrivaTreeClassifier, SGBDTRegressor, private_cross_validate

X = np.random.default_rng(0).uniform(size=(80, 2))
HOSTILE = [
    "<script>alert(1)</script>", "a|b", "`x` ```", "[a](javascript:alert(1))", "![i](http://evil.example/i.png)",
    "*b* _c_ ~~d~~ $e$", "# title", "- item", "1. item", "&lt;img src=x&gt;", "a\n---\nb", "</style></html>",
    "www.evil.example", "https://evil.example", "mail@evil.example", "\u202eabc", "\\", "===", "a: b # c", "'\"",
    ":smile:",
]  # fmt: skip


def schema_of(target):
    return lw.Schema(features=(lw.Numeric("length", 0.0, 1.0), lw.Numeric("width", 0.0, 1.0)), target=target)


RINGS = schema_of(lw.Numeric("rings", 0, 10))


@pytest.fixture(scope="module")
def secure():
    return SGBDTRegressor(epsilon=0.5, delta=1e-6, schema=RINGS, n_estimators=3).fit(X, 10 * X[:, 0])


@pytest.fixture(scope="module")
def seeded():
    target = lw.Categorical("kind", ("a", "b"))
    model = PrivaTreeClassifier(schema=schema_of(target), random_state=0, max_depth=2)
    return model.fit(X, np.where(X[:, 0] > 0.5, "a", "b"))


def test_it_begins_with_the_privacy_statement(secure):
    card = model_card(secure)
    front, start = re.match(r"---\n(.*?)\n---\n\n(.*?)\n\n## ", card, flags=re.DOTALL).groups()
    assert "epsilon: 0.4" in front
    assert "delta: 1.0e-06" in front  # with a point: YAML 1.1 reads 1e-06 as a text
    assert 'pipeline_tag: "tabular-regression"' in front
    assert "Differentially private: epsilon 0.5, delta 1e-06, add-remove" in start
    assert "an attacker who knows all other rows" in start


def test_it_holds_plan_assumptions_head_and_the_command_that_verifies_them(secure):
    card = model_card(secure, path="my model")
    for text in secure.privacy_.assumptions:
        assert f"* {escaped(text)}" in card
    assert f"ledgerwood ledger verify 'my model/ledger.jsonl' --head {secure.privacy_.ledger_head}" in card
    assert "* **n\\_estimators:** 3" in card
    assert "* **forests:** 1" in card
    assert "* **classes:**" not in card
    assert "| length | 0 to 1 | no |" in card
    assert 'SGBDTRegressor.load("my model")' in card or "SGBDTRegressor.load('my model')" in card


def test_the_layout_is_that_of_hugging_face(secure):
    found = re.findall(r"^(#{1,3}) (.*)$", model_card(secure), flags=re.MULTILINE)
    assert found == [
        ("#", "SGBDTRegressor of rings"), ("##", "Model Details"), ("##", "Uses"), ("###", "Direct Use"),
        ("###", "Out-of-Scope Use"), ("##", "Bias, Risks, and Limitations"),
        ("##", "How to Get Started with the Model"), ("##", "Training Details"), ("###", "Privacy"),
        ("###", "Ledger"), ("###", "Training Procedure"), ("###", "Training Data"), ("##", "Evaluation"),
        ("##", "Citation"), ("##", "Glossary"),
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_seed_shows_in_the_first_lines_after_a_load_too(form, seeded, tmp_path):
    seeded.save(tmp_path / "model")
    for model in (seeded, PrivaTreeClassifier.load(tmp_path / "model")):
        card = model_card(model, form)
        place = card.index("No privacy guarantee")
        assert place < card.index("Model Details")
        assert "trained with a seed" in card
        assert "Differentially private" not in card
    assert "epsilon: .inf" in model_card(seeded)


def test_an_infinite_epsilon_without_a_seed_is_not_called_a_seed(seeded, secure):
    unbounded = dataclasses.replace(secure.privacy_, epsilon=math.inf)
    tone, words, sentence = contents.verdict(unbounded)
    assert (tone, words, "seed" in sentence) == ("bad", "No privacy guarantee", False)
    assert "seed" in contents.verdict(seeded.privacy_)[2]
    assert contents.privacy_line(unbounded) == "privacy: no guarantee, epsilon inf"


def test_a_loaded_model_has_the_same_card(secure, tmp_path):
    secure.save(tmp_path / "model")
    loaded = SGBDTRegressor.load(tmp_path / "model")
    assert model_card(loaded) == model_card(secure)
    assert model_card(loaded, "html") == model_card(secure, "html")


def test_utility_is_there_only_if_it_is_given_and_is_marked_as_the_authors(secure):
    assert "gives no figure of utility" in model_card(secure)
    given = model_card(secure, evaluation={"R2": 0.8125, "by group": "see below"}, evaluation_text="On 500 rows.")
    assert "| R2 | 0.8125 |" in given
    assert "they are not private" in given
    assert "On 500 rows." in given
    public = model_card(secure, evaluation={"R2": 0.8}, evaluation_data="public")
    assert "they are not private" not in public
    assert "the rows behind them are public" in public


def test_private_scores_are_named_with_their_cost():
    model = SGBDTRegressor(epsilon=2.0, schema=RINGS, n_estimators=2, max_depth=1)
    result = private_cross_validate(model, X, 10 * X[:, 0], cv=2)
    card = model_card(model.fit(X, 10 * X[:, 0]), evaluation=result)
    assert "released with noise by a private cross-validation" in card
    assert f"| mean {escaped(result.scoring)} on held-out rows |" in card


def code_of(card, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", card, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("folder", ["model", "a model's"])
def test_its_code_and_its_command_run_as_they_stand(folder, secure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secure.save(folder)
    card = model_card(secure, path=folder)
    names = {"X": X}
    exec(code_of(card, "python")[0], names)
    assert names["model"].privacy_ == secure.privacy_
    (command,) = code_of(card, "bash")
    words = shlex.split(command)
    assert words[0] == "ledgerwood"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, result.output
    changed = CliRunner().invoke(app, [*words[1:-1], "0" * 64])
    assert changed.exit_code == 1


def test_a_search_says_that_it_chose():
    search = PrivateSearch(
        estimator=SGBDTRegressor(n_estimators=2, max_depth=1),
        candidates=[{"learning_rate": 0.1}, {"learning_rate": 0.5}], schema=RINGS, epsilon=2.0, delta=1e-5,
        mean_runs=2.0,
    ).fit(X, 10 * X[:, 0])  # fmt: skip
    card = model_card(search)
    assert "Chosen by a private search among 2 candidates" in card
    assert f"epsilon: {search.privacy_.epsilon!r}" in card


def test_who_answers_for_the_ledger_is_named():
    budget = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=lw.Adjacency.ADD_REMOVE)
    ledger = lw.Ledger(
        budget, unit=lw.PrivacyUnit.ROW, owner="Ada | B", description="Rings of trees", opened="2026-11-01"
    )
    card = model_card(SGBDTRegressor(schema=RINGS, n_estimators=2).fit(X, 10 * X[:, 0], ledger=ledger))
    for line in ("owner:** Ada \\| B", "purpose of the ledger:** Rings of trees", "opened:** 2026-11-01"):
        assert f"* **{line}\n" in card


def test_entries_before_a_checkpoint_are_said_to_be_trusted(tmp_path):
    path, budget = tmp_path / "x.jsonl", lw.Budget(epsilon=3.0, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE)
    with lw.Ledger.open(path, budget=budget, unit=lw.PrivacyUnit.ROW) as ledger:
        ledger.spend(lw.PureEvent(epsilon=0.5, adjacency=lw.Adjacency.ADD_REMOVE), purpose="before")
        ledger.checkpoint()
    with lw.Ledger.open(path, from_checkpoint=True) as ledger:
        model = SGBDTRegressor(schema=RINGS, n_estimators=2).fit(X, 10 * X[:, 0], ledger=ledger)
    card = model_card(model)
    assert "recomputes all of them" not in card
    assert "the 3 entries before it are not there, and what they spent is trusted" in card
    report = lw.verification.verify_ledger(model.ledger_)
    assert (report.verdict, report.grants) == ("trusted", 2)
    assert f"grants, draws:** 2, {report.draws}\n" in card


def test_of_many_features_the_first_hundred_are_listed():
    schema = lw.Schema.uniform(0.0, 1.0, n_features=130, target=lw.Numeric("y", 0, 1))
    model = SGBDTRegressor(schema=schema, n_estimators=1).fit(np.zeros((9, 130)), np.zeros(9))
    card = model_card(model)
    assert "Features that are not listed: 30, of 130." in card
    assert ("| x99 |" in card, "| x100 |" in card) == (True, False)


class Seen(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(sorted(attrs))))

    def handle_data(self, data):
        self.text += data


def shape(text):
    seen = Seen()
    seen.feed(text)
    return [tag for tag, _ in seen.tags], seen.text


def named(words):
    """A model whose columns, categories and classes have these names."""
    target = lw.Categorical(f"target {words[0]}", tuple(words))
    numbers = tuple(lw.Numeric(word, 0.0, 1.0) for word in words)
    schema = lw.Schema(features=(*numbers, lw.Categorical("c", tuple(words))), target=target)
    rows = [[*([0.5] * len(words)), word] for word in words]
    return PrivaTreeClassifier(schema=schema, random_state=0, max_depth=1).fit(rows, list(words))


@pytest.fixture(scope="module")
def models():
    """One with hostile names, and one with as many plain ones."""
    return named(HOSTILE), named([f"n{place}" for place in range(len(HOSTILE))])


def card_of(model, form, words):
    return model_card(
        model, form, name=words, path=words, description=words, uses=words, out_of_scope=words, data=words,
        limitations=words, evaluation={words: words}, evaluation_text=words, owner=words, contact=words,
        license=words, citation=words,
    )  # fmt: skip


@pytest.mark.parametrize("words", HOSTILE)
def test_no_text_from_outside_becomes_markup(words, models):
    hostile, plain = models
    reader = MarkdownIt("gfm-like")
    bodies = [
        reader.render(card_of(model, "markdown", said).split("\n---\n", 1)[1])
        for model, said in ((hostile, words), (plain, "x y"))
    ]
    tags, text = shape(bodies[0])
    assert tags == shape(bodies[1])[0]
    assert not {"script", "img", "a", "del", "style"} & set(tags)
    shown = " ".join(words.split()).replace("\u202e", "\N{REPLACEMENT CHARACTER}")
    assert text.count(shown) >= 12
    pages = [card_of(model, "html", said) for model, said in ((hostile, words), (plain, "x y"))]
    assert shape(pages[0])[0] == shape(pages[1])[0]


def test_the_front_matter_is_yaml_whatever_the_words_are(secure):
    for words in HOSTILE:
        front = model_card(secure, license=words).split("---\n")[1]
        assert yaml.safe_load(front)["license"] == " ".join(words.split()).replace("\u202e", "\ufffd")
    assert yaml.safe_load(front)["epsilon"] == secure.privacy_.epsilon
    assert yaml.safe_load(front)["delta"] == 1e-6


@pytest.mark.parametrize("words", [*HOSTILE, "1. a", "+", "2) b", "a_b", "-1 to 1", "0.5"])
def test_an_escaped_line_reads_as_it_was(words):
    tags, text = shape(MarkdownIt("gfm-like").render(escaped(words)))
    assert tags == ["p"]
    assert text.strip() == " ".join(words.split()).replace("\u202e", "\N{REPLACEMENT CHARACTER}")


def test_a_page_stands_alone(secure):
    page = model_card(secure, "html", description="One.\n\nTwo.")
    assert "default-src 'none'" in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    assert "<p>One.</p><p>Two.</p>" in page
    assert page.count("<h3>") == 6


def test_what_has_no_card_is_refused(secure):
    with pytest.raises(InvalidParameter, match="'markdown' or 'html'"):
        model_card(secure, "pdf")
    with pytest.raises(InvalidParameter, match="no trainer"):
        model_card(object())
    with pytest.raises(NotFittedError):
        model_card(SGBDTRegressor())
    with pytest.raises(InvalidParameter, match="Pipeline"):
        model_card(make_pipeline(secure))
    with pytest.raises(InvalidParameter, match="figures by name"):
        model_card(secure, evaluation=[0.8])
    with pytest.raises(InvalidParameter, match="'public' or 'private'"):
        model_card(secure, evaluation={"a": 1.0}, evaluation_data="mine")
