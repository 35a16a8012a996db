"""This library's own systems, as pyproject.toml declares them to the command line."""

from ledgerwood.trainers.base.systems import System
from ledgerwood.trainers.boosting.training import PrivateBoostingClassifier, PrivateBoostingRegressor
from ledgerwood.trainers.dpboost.training import DPBoostClassifier, DPBoostRegressor
from ledgerwood.trainers.dpxgboost.training import DPXGBoostClassifier, DPXGBoostRegressor
from ledgerwood.trainers.federated.training import FederatedGBDTClassifier, FederatedGBDTRegressor
from ledgerwood.trainers.privatree.training import PrivaTreeClassifier
from ledgerwood.trainers.sgbdt.training import SGBDTClassifier, SGBDTRegressor

BOOSTING = System(
    title="private boosting",
    classifier=PrivateBoostingClassifier,
    regressor=PrivateBoostingRegressor,
    lacks={"subsample": "whose trees see all rows, since a sampled plan has more noise at the same cost"},
)
SGBDT = System(title="S-GBDT", classifier=SGBDTClassifier, regressor=SGBDTRegressor)
DPBOOST = System(
    title="DPBoost",
    classifier=DPBoostClassifier,
    regressor=DPBoostRegressor,
    lacks={"subsample": "whose trees share the rows among them"},
)
DPXGBOOST = System(title="DP-XGBoost", classifier=DPXGBoostClassifier, regressor=DPXGBoostRegressor)
FEDERATED = System(
    title="the federated framework",
    classifier=FederatedGBDTClassifier,
    regressor=FederatedGBDTRegressor,
    preset="recommended",
    lacks={"subsample": "whose trees see all rows"},
)
PRIVATREE = System(
    title="PrivaTree",
    classifier=PrivaTreeClassifier,
    lacks={
        "n_estimators": "which grows one tree",
        "learning_rate": "whose leaves are labels",
        "subsample": "whose one tree sees all rows",
    },
)
