"""A model card in the layout of Hugging Face's cards, as Markdown and as HTML."""

from collections.abc import Mapping
from typing import Any, Literal

from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

import ledgerwood
from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.pages.html import Page, Section, render
from ledgerwood.pages.values import plain
from ledgerwood.reading.cards import contents
from ledgerwood.reading.cards.evaluations import EvaluationData, evaluation_section
from ledgerwood.reading.cards.markdown import FrontMatter, markdown
from ledgerwood.reading.exports.scores import exported_model
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.trainers.choosing.private_search import PrivateSearch
from ledgerwood.trainers.choosing.validation_results import CrossValidation

CardFormat = Literal["markdown", "html"]


def model_card(
    model: Any,
    format: CardFormat = "markdown",  # noqa: A002 - the word that people look for
    *,
    name: str | None = None,
    path: str = "model",
    description: str | None = None,
    uses: str | None = None,
    out_of_scope: str | None = None,
    data: str | None = None,
    limitations: str | None = None,
    evaluation: Mapping[str, str | float] | CrossValidation[Any] | None = None,
    evaluation_data: EvaluationData = "private",
    evaluation_text: str | None = None,
    owner: str | None = None,
    contact: str | None = None,
    license: str | None = None,  # noqa: A002 - as above
    citation: str | None = None,
) -> str:
    """Write the card of a released model, in the layout of Hugging Face's model cards.

    It begins with the privacy statement, a seed's warning included, and holds released and public values only: no row,
    no number of rows, and no figure of utility unless the author gives one, which is then marked as the author's own.
    Whatever is given is shown as plain text, an empty line between paragraphs: no markup in it takes effect.

    Args:
        model: a fitted or loaded trainer.
        format: "markdown" with YAML front matter, or "html", one page that stands alone and needs no network.
        name: the title; by default the estimator and its target.
        path: of the folder that `save` wrote, for the code and the command that the card shows.
        description, uses, out_of_scope, data, limitations: what the author says of each.
        evaluation: figures by name, or the result of `private_cross_validate` with noisy scores.
        evaluation_data: for figures by name, which rows they come from: "private" says in the card that they are not
            private, "public" that no protected row is behind them.
        evaluation_text: on which rows, in which way.
        owner, contact: who answers for the model, and how to reach them.
        license: its identifier, such as "cc-by-4.0".
        citation: how to cite the model.

    Raises:
        InvalidParameter: no trainer, a pipeline, another format, or scores that are for the owner of the rows only.
        NotFittedError: a trainer without a fit.
    """
    if format not in ("markdown", "html"):
        raise _validate.fail("format", format, "'markdown' or 'html'", "format")
    candidates = len(model.candidates) if isinstance(model, PrivateSearch) else None
    model = exported_model(model)
    if not isinstance(model, AbstractTrainer):
        raise InvalidParameter(f"model={type(model).__name__} is no trainer of ledgerwood: give a fitted one")
    check_is_fitted(model, model._keeps)
    privacy, target = model.privacy_, model.schema_.target
    title = name or f"{type(model).__name__}{'' if target is None else f' of {target.name}'}"
    tone, verdict, sentence = contents.verdict(privacy)
    people = (("Developed by", owner), ("Contact", contact), ("License", license))
    sections = (
        contents.details_section(
            model, paragraphs(description), tuple((key, value) for key, value in people if value is not None)
        ),
        *_uses(uses, out_of_scope),
        contents.limits_section(model, paragraphs(limitations)),
        contents.start_section(model, path),
        Section(title="Training Details"),
        contents.privacy_section(privacy),
        contents.ledger_section(model, path),
        contents.plan_section(model, candidates),
        contents.data_section(model, paragraphs(data)),
        evaluation_section(evaluation, evaluation_data, evaluation_text),
        contents.citation_section(paragraphs(citation)),
        contents.glossary_section(),
    )
    page = Page(
        kind="model card",
        title=title,
        tone=tone,
        verdict=verdict,
        sentence=sentence,
        facts=(
            ("epsilon", plain(privacy.epsilon)),
            ("delta", plain(privacy.delta)),
            ("neighbours", privacy.adjacency.value),
            ("unit", privacy.unit.value),
        ),
        sections=sections,
        footer=f"Written by ledgerwood {ledgerwood.__version__} from the model, its ledger and what its author said.",
        record={"estimator": type(model).__name__, "privacy": privacy.to_record()},
    )
    return render(page) if format == "html" else markdown(page, _front(model, license))


def paragraphs(text: str | None) -> tuple[str, ...]:
    """The paragraphs of a text, which empty lines part."""
    return tuple(part.strip() for part in (text or "").replace("\r", "").split("\n\n") if part.strip())


def _uses(uses: str | None, out_of_scope: str | None) -> tuple[Section, ...]:
    direct = paragraphs(uses) or ("The author of this card names none.",)
    beyond = paragraphs(out_of_scope) or (
        "Statements about single people in the training data; decisions for which the noise is too large.",
    )
    return (
        Section(title="Uses"),
        Section(title="Direct Use", level=3, texts=direct),
        Section(title="Out-of-Scope Use", level=3, texts=beyond),
    )


def _front(model: AbstractTrainer, license_: str | None) -> FrontMatter:
    privacy = model.privacy_
    stated: dict[str, Any] = {} if license_ is None else {"license": license_}
    return {
        **stated,
        "library_name": "ledgerwood",
        "pipeline_tag": "tabular-regression" if is_regressor(model) else "tabular-classification",
        "tags": ["differential-privacy", "tabular", type(model).__name__],
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "adjacency": privacy.adjacency.value,
        "privacy_unit": privacy.unit.value,
        "certified": contents.is_certified(privacy),
        "randomness": privacy.randomness,
        "ledger_head": privacy.ledger_head,
    }
