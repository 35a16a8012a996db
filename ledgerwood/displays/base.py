"""What every display has: values that are drawn on request, words for readers who cannot see them, and a file."""

import base64
import html
import io
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerwood.displays import style
from ledgerwood.displays.style import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class AbstractDisplay(ABC):
    """Values of a picture, computed before it is drawn.

    A constructor such as `from_price` computes, `plot` draws on matplotlib's axes and returns them, and `save` writes a
    file. In a notebook, a display as the last expression of a cell shows its picture, with a text for screen readers,
    light or dark as the reader's system is. A display holds public or released values only, never rows.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def alt(self) -> str:
        """What the picture shows, in words and with its main figures."""

    @property
    def size(self) -> tuple[float, float]:
        """Of a new figure, in inches."""
        return style.SIZE

    def plot(self, ax: "Axes | None" = None, *, theme: Theme | None = None) -> "Axes":
        """Draw on `ax`, or on new axes of pyplot; returns the axes.

        Args:
            ax: where to draw; a new figure if it is None.
            theme: paints the background, "light" or "dark". None keeps matplotlib's background and chooses the colours
                that are legible on it.

        Raises:
            InvalidParameter: another theme.
            ModuleNotFoundError: matplotlib is missing: pip install 'ledgerwood[plot]'.
        """
        ax, colours = style.canvas(ax, theme=theme, size=self.size, display=type(self).__name__)
        self._draw(ax, colours)
        return ax

    def save(self, path: str | Path, *, theme: Theme = "light") -> None:
        """Write the picture to a file whose ending names its format (svg, png, pdf), with `alt` as its description.

        Raises:
            InvalidParameter: another theme.
            ModuleNotFoundError: matplotlib is missing: pip install 'ledgerwood[plot]'.
            OSError: the file cannot be written.
        """
        path = Path(path)
        key = {".svg": "Description", ".png": "Description", ".pdf": "Subject"}.get(path.suffix.lower())
        self._figure(theme).savefig(path, dpi=200, metadata={key: self.alt} if key else None)

    @abstractmethod
    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        """Draw on axes that have the style."""

    def _figure(self, theme: Theme) -> "Figure":
        def draw(ax: "Axes") -> None:
            self._draw(ax, style.palette(ax, theme))

        return style.alone(draw, theme, self.size, type(self).__name__)

    def _repr_html_(self) -> str | None:
        """The picture in both themes and its text; None, and so the plain repr, where matplotlib is missing."""
        try:
            light, dark = (self._svg(theme) for theme in ("light", "dark"))
        except ModuleNotFoundError:
            return None
        return (
            f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}"/>'
            f'<img src="{light}" alt="{html.escape(self.alt)}" style="max-width:100%;width:{self.size[0] * 96:.0f}px"/>'
            "</picture>"
        )

    def _svg(self, theme: Theme) -> str:
        """The picture as a data address: its texts stay texts, which keeps it small."""
        figure, written = self._figure(theme), io.StringIO()
        from matplotlib import rc_context

        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ledgerwood"}):
            figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
        return "data:image/svg+xml;base64," + base64.b64encode(written.getvalue().encode()).decode("ascii")
