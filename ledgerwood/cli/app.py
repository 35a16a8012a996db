"""What all commands of the command line share: a class whose help ends with examples, and how groups are made."""

import inspect
import re
from typing import Any, final

import typer
from typer.core import TyperCommand

_EXAMPLES = re.compile(r"^Examples:\n((?:    .*\n|\n)+)", flags=re.MULTILINE)


@final
class Command(TyperCommand):
    """A command whose docstring has a section "Examples:"; its help shows them last, next to the prompt."""

    @property
    def examples(self) -> str:
        """The lines of the section as they stand, without their indentation; empty if there is none."""
        found = _EXAMPLES.search(inspect.cleandoc(self.help or "") + "\n")
        return "" if found is None else inspect.cleandoc(found[1])

    def format_help(self, ctx: Any, formatter: Any) -> None:  # click's own, or those of a typer that has its own click
        """Write the help, and below it the examples, whose lines are never wrapped: they are made to be pasted."""
        whole, examples = self.help, self.examples
        self.help = _EXAMPLES.sub("", inspect.cleandoc(whole or "") + "\n").strip()
        try:
            super().format_help(ctx, formatter)
        finally:
            self.help = whole
        if examples:
            formatter.write("Examples:\n" + "".join(f"  {line}".rstrip() + "\n" for line in examples.splitlines()))


def group(text: str) -> typer.Typer:
    """A group of commands, which shows its help if no command is named.

    Args:
        text: what its help says.
    """
    return typer.Typer(no_args_is_help=True, help=text)
