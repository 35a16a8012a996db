"""The statistics of audits: bounds from counts and scores, each with what it rests on. docs/explanation/auditing.md."""

from ledgerwood.verification.auditing.claims import Claim as Claim
from ledgerwood.verification.auditing.claims import ClaimedCurve as ClaimedCurve
from ledgerwood.verification.auditing.counts import clopper_pearson as clopper_pearson
from ledgerwood.verification.auditing.counts import hockey_stick as hockey_stick
from ledgerwood.verification.auditing.counts import one_run as one_run
from ledgerwood.verification.auditing.counts import one_run_p_value as one_run_p_value
from ledgerwood.verification.auditing.counts import randomised_labels as randomised_labels
from ledgerwood.verification.auditing.gaussian import epsilon_of as epsilon_of
from ledgerwood.verification.auditing.gaussian import mu_from_counts as mu_from_counts
from ledgerwood.verification.auditing.gaussian import mu_from_means as mu_from_means
from ledgerwood.verification.auditing.result import Assumption as Assumption
from ledgerwood.verification.auditing.result import LowerBound as LowerBound
from ledgerwood.verification.auditing.result import Scores as Scores
