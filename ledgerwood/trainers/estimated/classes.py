"""Classes of a target that were found by private counts: which are learned, and what to warn of."""

import dataclasses

from ledgerwood.curator import Categorical, Category, Schema

NO_TEXT: Category = "(other)"
NO_CODE: Category = 0
"""Public placeholders where no category, or no class, was found."""


def some_classes(found: tuple[tuple[Category, int], ...], *, text: bool, most: int) -> tuple[Category, ...]:
    """The classes that showed, of one type, so that they sort, the commonest first; a placeholder where none did.

    Args:
        found: released (class, noisy number of rows).
        text: whether the placeholder for no class at all is a string.
        most: how many are kept, the commonest ones.
    """
    ranked = [key for key, _ in sorted(found, key=lambda item: -item[1])]
    if not ranked:
        return (NO_TEXT if text else NO_CODE,)
    strings = isinstance(ranked[0], str)
    return tuple([key for key in ranked if isinstance(key, str) is strings][:most])


def with_two_classes(schema: Schema) -> Schema:
    """The schema, with a class beside an only one, so that a plan for two or more can be carried out."""
    target = schema.target
    if not isinstance(target, Categorical) or len(target.categories) > 1:
        return schema
    (only,) = target.categories
    pair = (NO_TEXT, "(none)") if isinstance(only, str) else (NO_CODE, 1)
    other = next(each for each in pair if each != only)
    return dataclasses.replace(schema, target=Categorical(target.name, (only, other)))


def class_warning(found: int, classes: tuple[Category, ...]) -> str | None:
    """What to warn of: classes that are left out, or too few to tell apart. From released values alone.

    Args:
        found: how many classes showed.
        classes: the ones that are learned, or a placeholder.
    """
    declare = "declare the classes in the schema (ledgerwood.Categorical), which costs nothing, or raise epsilon"
    if not found:
        return (
            "no class showed in the privately estimated schema: every row is predicted as the placeholder "
            f"{classes[0]!r}; {declare}"
        )
    if len(classes) < found:
        return (
            f"{found} classes showed in the privately estimated schema, and {len(classes)} of them are learned, the "
            "commonest ones of one type (strings or numbers): rows of the others take no part; raise n_estimators "
            f"where there are fewer trees than classes, or {declare}"
        )
    if len(classes) == 1:
        return (
            f"one class, {classes[0]!r}, showed in the privately estimated schema: every row is predicted as "
            f"it; {declare}"
        )
    return None
