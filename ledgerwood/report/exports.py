"""Exports of a model folder into files."""

import sys
from pathlib import Path
from typing import Literal

from ledgerwood.errors import InvalidParameter
from ledgerwood.reading import TreeModel, export_text, model_card, to_onnx, to_xgboost
from ledgerwood.report.models import load_model
from ledgerwood.report.printing import Fact

ExportFormat = Literal["xgboost", "onnx", "text", "card"]


def write_export(folder: Path, to: ExportFormat, out: Path | None) -> dict[str, Fact]:
    """Write the model that lies in `folder` to a file, whole or not at all, or as text to standard output.

    Args:
        folder: a model.
        to: the format.
        out: the file; None of "text" and "card" only.

    Returns:
        What was written, and the model's epsilon and delta.

    Raises:
        InvalidParameter: no model folder, a model that cannot be exported, or a file's name without a format.
        ModuleNotFoundError: a package is missing.
        OSError: the file cannot be written.
    """
    model = load_model(folder)
    match to:
        case "xgboost":
            data = _booster(model, out)
        case "onnx":
            data = to_onnx(model).SerializeToString()
        case "text":
            trees = TreeModel.of(model).trees
            data = export_text(model, trees=range(len(trees)) if len(trees) > 1 else None).encode("utf-8")
        case "card":
            html = out is not None and out.suffix.lower() in (".html", ".htm")
            data = model_card(model, "html" if html else "markdown", path=str(folder)).encode("utf-8")
    if out is None:
        sys.stdout.write(data.decode("utf-8"))
    else:
        partial = out.with_name(f"{out.name}.part")
        try:
            partial.write_bytes(data)
            partial.replace(out)
        finally:
            partial.unlink(missing_ok=True)
    privacy = model.privacy_
    return {
        "out": str(out),
        "format": to,
        "bytes": len(data),
        "estimator": type(model).__name__,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "randomness": privacy.randomness,
    }


def _booster(model: object, out: Path | None) -> bytes:
    formats = {".json": "json", ".ubj": "ubj"}
    suffix = "" if out is None else out.suffix.lower()
    if suffix not in formats:
        raise InvalidParameter(f"out={str(out)!r} must end in .json or .ubj, XGBoost's own formats (unit: file name)")
    return bytes(to_xgboost(model).save_raw(raw_format=formats[suffix]))
