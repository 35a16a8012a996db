"""The statistics of audits: bounds from counts and scores, each with what it rests on. docs/explanation/auditing.md."""

from ledgerwood.verification.auditing.claims import Claim as Claim
from ledgerwood.verification.auditing.claims import ClaimedCurve as ClaimedCurve
from ledgerwood.verification.auditing.counts import clopper_pearson as clopper_pearson
from ledgerwood.verification.auditing.counts import hockey_stick as hockey_stick
from ledgerwood.verification.auditing.counts import randomised_labels as randomised_labels
from ledgerwood.verification.auditing.gaussian import epsilon_of as epsilon_of
from ledgerwood.verification.auditing.gaussian import mu_from_counts as mu_from_counts
from ledgerwood.verification.auditing.gaussian import mu_from_means as mu_from_means
from ledgerwood.verification.auditing.one_run import guess_grid as guess_grid
from ledgerwood.verification.auditing.one_run import one_run as one_run
from ledgerwood.verification.auditing.one_run import one_run_p_value as one_run_p_value
from ledgerwood.verification.auditing.one_run import one_run_scores as one_run_scores
from ledgerwood.verification.auditing.one_run_curves import one_run_curve as one_run_curve
from ledgerwood.verification.auditing.one_run_curves import one_run_mu as one_run_mu
from ledgerwood.verification.auditing.result import Assumption as Assumption
from ledgerwood.verification.auditing.result import LowerBound as LowerBound
from ledgerwood.verification.auditing.result import Scores as Scores
from ledgerwood.verification.auditing.score_test import score as score
from ledgerwood.verification.auditing.sequential import anytime as anytime
from ledgerwood.verification.auditing.sequential import anytime_combined as anytime_combined
from ledgerwood.verification.auditing.sequential import anytime_guesses as anytime_guesses
from ledgerwood.verification.auditing.sequential import anytime_mu as anytime_mu
from ledgerwood.verification.auditing.sequential import combine_dependent as combine_dependent
from ledgerwood.verification.auditing.sequential import combine_independent as combine_independent
from ledgerwood.verification.auditing.sequential import log_e_value as log_e_value
