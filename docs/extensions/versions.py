"""The list of versions in the page's head: rendered when the site is built, so that it needs no network and no fetch.

Sites of releases lie beside each other, each in a folder with its version's name; docs/versions.json lists those that
are kept, newest first. The build writes `switcher.json`, in the form that the theme's own switcher reads, too.
"""

import json
from pathlib import Path
from typing import Any


def versions(kept: Path, current: str) -> list[dict[str, str]]:
    """All versions that a site links to, its own first, with addresses relative to the site's root.

    Args:
        kept: the file with the versions of releases, a list of texts.
        current: the version that is built.
    """
    names = [current, *(name for name in json.loads(kept.read_text(encoding="utf-8")) if name != current)]
    return [{"name": name, "version": name, "url": f"../{name}/"} for name in names]


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""

    def listed() -> list[dict[str, str]]:
        return versions(Path(app.srcdir) / "versions.json", app.config.release)

    def context(_app: Any, _page: str, _template: str, values: dict[str, Any], _doctree: object) -> None:
        values["kept_versions"] = listed()

    def finished(_app: Any, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            (Path(app.outdir) / "switcher.json").write_text(json.dumps(listed(), indent=1) + "\n", encoding="utf-8")

    app.connect("html-page-context", context)
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
