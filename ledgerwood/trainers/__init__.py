"""Floor 5: trainers, post-processing of releases only."""

from ledgerwood.trainers.privacy import PrivacyStatement as PrivacyStatement
from ledgerwood.trainers.sgbdt import SGBDTPlan as SGBDTPlan
from ledgerwood.trainers.sgbdt_estimators import SGBDTClassifier as SGBDTClassifier
from ledgerwood.trainers.sgbdt_estimators import SGBDTRegressor as SGBDTRegressor
from ledgerwood.trainers.tuning import PrivateSearch as PrivateSearch
from ledgerwood.trainers.tuning import SearchPlan as SearchPlan
