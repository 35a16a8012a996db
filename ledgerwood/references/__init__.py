"""The papers that this library rests on, each written once: `systems`, `accounting`, `mechanisms`, `auditing`.

Which class rests on which paper is said at the class (plans, results of audits) or in `ledgerwood.citing`.
"""

from ledgerwood.references.cited import CitationNote as CitationNote
from ledgerwood.references.cited import Citations as Citations
from ledgerwood.references.cited import Cited as Cited
from ledgerwood.references.reference import Reference as Reference
