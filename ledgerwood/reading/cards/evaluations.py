"""The evaluation in a model card: figures that the author gives, or scores that were released privately."""

from collections.abc import Mapping
from typing import Any, Literal

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.pages.html import HtmlTable, Section
from ledgerwood.pages.values import plain
from ledgerwood.trainers.choosing.validation_results import CrossValidation, OwnerOnly

EvaluationData = Literal["public", "private"]
_NONE = "The author of this card gives no figure of utility. A figure that is computed from private rows has a cost."
_OWN = {
    "public": "The author of this card gives these figures and says that the rows behind them are public. The library "
    "did not compute them.",
    "private": "The author of this card gives these figures; the library did not compute them. They come from private "
    "rows, without noise: they are not private, and the privacy statement does not cover them.",
}


def evaluation_section(
    evaluation: Mapping[str, str | float] | CrossValidation[Any] | None, data: EvaluationData, text: str | None
) -> Section:
    """The section "Evaluation".

    Args:
        evaluation: figures by name, a private cross-validation, or none.
        data: of figures by name, what rows they come from.
        text: on which rows it was, or more that the author says.

    Raises:
        InvalidParameter: another value, or scores that are for the owner of the rows only.
    """
    said = () if text is None else (text,)
    if data not in _OWN:
        raise _validate.fail("evaluation_data", data, "'public' or 'private'", "rows")
    if evaluation is None:
        return Section(title="Evaluation", texts=(*said, _NONE))
    if isinstance(evaluation, CrossValidation):
        return _validated(evaluation, said)
    given: object = evaluation
    if not isinstance(given, Mapping):
        bound = "figures by name, or what private_cross_validate returned"
        raise _validate.fail("evaluation", given, bound, "evaluation")
    rows = tuple((str(name), value if isinstance(value, str) else f"{value:.6g}") for name, value in given.items())
    table = HtmlTable(header=("measure", "value"), rows=rows, numbers=frozenset({1}))
    return Section(title="Evaluation", texts=(*said, _OWN[data]), tables=(table,))


def _validated(result: CrossValidation[Any], said: tuple[str, ...]) -> Section:
    scores = result.scores
    if isinstance(scores, OwnerOnly):
        raise InvalidParameter(
            "evaluation has scores for the owner of the rows only, which are not private and belong in no card: take "
            "a cross-validation with noisy scores, or give figures by name with evaluation_data='private'"
        )
    privacy = result.privacy
    text = (
        "These scores were released with noise by a private cross-validation of fits like this one, on its own ledger "
        f"entries: all of its fits and scores cost epsilon {plain(privacy.epsilon)} at delta {plain(privacy.delta)} "
        "together, which the privacy statement of this model does not contain."
    )
    rows = (
        (f"mean {result.scoring} on held-out rows", plain(scores.mean_test_score)),
        ("standard deviation of its noise, about", plain(scores.noise_stddev)),
        *((f"fold {place}", plain(score)) for place, score in enumerate(scores.test_score, start=1)),
    )
    table = HtmlTable(header=("measure", "value"), rows=rows, numbers=frozenset({1}))
    return Section(title="Evaluation", texts=(*said, text), tables=(table,))
