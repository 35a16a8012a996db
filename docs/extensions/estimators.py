"""A page for each estimator, written before Sphinx reads: from its fields, docstrings and signatures, never by hand.

The pages lie in docs/reference/estimators, which is not kept. Each estimator of each system has one; an estimator whose
parameters are not described anywhere stops the build.
"""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from extensions.parameters import Parameter, attributes, parameters
from ledgerwood.trainers import AbstractPlan, AbstractTrainer, System, known

PAPERS = {
    "boosting": None,  # this library's own: its explanation is its paper
    "sgbdt": ("Kirschte, Peinemann, Stock, Cotrini, Mohammadi: S-GBDT", "https://arxiv.org/abs/2309.12041"),
    "dpboost": ("Li, Wu, Wen, He: DPBoost", "https://arxiv.org/abs/1911.04209"),
    "dpxgboost": ("Grislain, Gonzalvez: DP-XGBoost", "https://arxiv.org/abs/2110.12770"),
    "federated": ("Maddock, Cormode, Wang, Maple, Jha: Federated boosted trees", "https://arxiv.org/abs/2210.02910"),
    "privatree": ("Vos, Vos, Li, Erkin, Verwer: PrivaTree", "https://arxiv.org/abs/2305.15394"),
}
"""What each folder of `ledgerwood.trainers` with an estimator follows."""

METHODS = (
    "fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "staged_predict", "score", "make_plan",
    "save", "load",
)  # fmt: skip
TARGETS = {
    "classifier": ('lw.Categorical("smokes", ("no", "yes"))', 'np.where(X[:, 0] > 50, "yes", "no")'),
    "regressor": ('lw.Numeric("pressure", 80, 200)', "100 + 0.5 * X[:, 0] + 0.3 * X[:, 1]"),
}


def estimators() -> list[type[AbstractTrainer]]:
    """The estimators of all systems of this library, the recommended ones first."""
    systems = [each for each in vars(known).values() if isinstance(each, System)]
    order = list(PAPERS)
    found = [each for system in systems for each in system.estimators]
    return sorted(found, key=lambda each: (order.index(system_of(each)), each.__name__))


def system_of(estimator: type[AbstractTrainer]) -> str:
    """The folder of an estimator's system, which is also the name of its explanation."""
    return estimator.__module__.split(".")[2]


def plan_of(estimator: type[AbstractTrainer]) -> type[AbstractPlan]:
    """The class of an estimator's plan: the one final plan of the module `plan` in the same folder."""
    module = importlib.import_module(f"ledgerwood.trainers.{system_of(estimator)}.plan")
    (found,) = (
        each
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, AbstractPlan) and each.__module__ == module.__name__
        if not name.startswith("Abstract")
    )
    return found


def example(estimator: type[AbstractTrainer]) -> str:
    """A fit on made-up rows, which can be pasted."""
    kind = "classifier" if estimator.__name__.endswith("Classifier") else "regressor"
    target, labels = TARGETS[kind]
    pure = any(each.name == "delta" and each.default == "0.0" for each in parameters(estimator, plan_of(estimator)))
    name = estimator.__name__
    return f"""import numpy as np
import ledgerwood as lw
from ledgerwood.trainers import {name}

X = np.random.default_rng(0).uniform((0, 40), (100, 160), size=(2000, 2))
y = {labels}
schema = lw.Schema(
    features=(lw.Numeric("age", 0, 100), lw.Numeric("weight", 40, 160)),
    target={target},
)
model = {name}(
    epsilon=1.0, {"" if pure else "delta=1e-6, "}schema=schema, expected_rows=2000
).fit(X, y)
print(model.predict(X[:3]))
print(f"epsilon {{model.privacy_.epsilon:.3f}}, delta {{model.privacy_.delta:g}}")
"""


def page(estimator: type[AbstractTrainer]) -> str:
    """One estimator's page, as Markdown."""
    name, system, plan = estimator.__name__, system_of(estimator), plan_of(estimator)
    source = "_modules/" + estimator.__module__.replace(".", "/") + f".html#{name}"
    paper = PAPERS[system]
    links = [
        f"{{doc}}`how it works <../../explanation/{system}>`",
        "" if paper is None else f"[the paper]({paper[1]}) ({paper[0]})",
        f"{{py:class}}`all methods <{estimator.__module__}.{name}>`",
        f"{{py:class}}`its plan <{plan.__module__}.{plan.__name__}>`",
        f'<a class="reference internal" href="../../{source}">source</a>',
    ]
    own = inspect.getdoc(estimator) or ""
    fitted = "\n".join(f"* **`{each}`**: {_marked(words)}" for each, words in attributes(estimator).items())
    methods = "\n".join(f"* `{each}{_signature(estimator, each)}`" for each in _methods(estimator))
    return "\n\n".join(
        (
            f"# {name}",
            _marked(re.split(r"(?<=[.:]) Parameters: see|\n\nParameters: see|\n\nArgs:", own)[0]),
            " · ".join(link for link in links if link),
            f"```python\n{example(estimator)}```",
            "## Parameters",
            "All are given by name. `None` takes what the public rule or the preset says; `plan_` has the value.",
            "\n".join(_bullet(each) for each in parameters(estimator, plan)),
            "## After a fit",
            fitted,
            "## Methods",
            methods,
        )
    )


def write(folder: Path) -> list[Path]:
    """All pages and their index; a page that has not changed is left alone, and one that is no estimator's removed."""
    folder.mkdir(exist_ok=True)
    pages = {f"{each.__name__}.md": page(each) + "\n" for each in estimators()}
    cards = "\n".join(f"{each.__name__} | {_marked(_summary(each))}" for each in estimators())
    pages["index.md"] = (
        "# Estimators\n\nEach page lists the parameters of one estimator, with an example that can be pasted. "
        "{doc}`../../how-to/choose-a-trainer` says which one to take.\n\n"
        f"```{{cards}}\n{cards}\n```\n"
    )
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


def _summary(estimator: type[AbstractTrainer]) -> str:
    """The first line of a docstring, without where its parameters are."""
    return re.split(r" Parameters: see|\n", inspect.getdoc(estimator) or "")[0]


def _methods(estimator: type[AbstractTrainer]) -> list[str]:
    """The methods that an estimator has, in the order of METHODS; a property says that it has none of the name."""
    held = {name: inspect.getattr_static(estimator, name) for name in METHODS if name in dir(estimator)}
    return [name for name, method in held.items() if not isinstance(method, property)]


def _bullet(each: Parameter) -> str:
    default = f", default `{each.default}`" if each.default else ""
    return f"* **`{each.name}`** (`{each.kind}`{default}): {_marked(each.words)}"


def _signature(estimator: type[AbstractTrainer], method: str) -> str:
    """The arguments of a method by name, without types."""
    found = inspect.signature(getattr(estimator, method)).parameters.values()
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found if each.name not in {"self", "cls"}]
    return str(inspect.Signature(bare))


def _marked(words: str) -> str:
    """Plain words with `code` as Markdown: nothing else is markup, and a page of the documentation is a link."""
    pieces = re.split(r"(`[^`]+`)", " ".join(words.split()))
    pieces[::2] = [re.sub(r"([*_<\[\]$~^])", r"\\\1", text) for text in pieces[::2]]
    text = "".join(pieces)
    text = re.sub(r"docs/([\w\\/-]+)\.md#([\w-]+)", r"{ref}`this page <\2>`", text)
    return re.sub(r"docs/([\w\\/-]+)\.md", r"{doc}`this page <../../\1>`", text)


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "estimators") and None)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
