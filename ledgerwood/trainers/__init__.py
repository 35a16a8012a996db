"""Floor 5: trainers, post-processing of releases only."""

from ledgerwood import _extras

try:
    from ledgerwood.trainers.base.bounds import Count as Count
    from ledgerwood.trainers.base.bounds import Real as Real
    from ledgerwood.trainers.base.bounds import positive as positive
    from ledgerwood.trainers.base.bounds import share as share
    from ledgerwood.trainers.base.estimator import AbstractTreeEstimator as AbstractTreeEstimator
    from ledgerwood.trainers.base.outputs import AbstractClassifier as AbstractClassifier
    from ledgerwood.trainers.base.outputs import AbstractRegressor as AbstractRegressor
    from ledgerwood.trainers.base.plan import AbstractNoisePlan as AbstractNoisePlan
    from ledgerwood.trainers.base.plan import AbstractPlan as AbstractPlan
    from ledgerwood.trainers.base.plan import AbstractTreePlan as AbstractTreePlan
    from ledgerwood.trainers.base.plan import Plan as Plan
    from ledgerwood.trainers.base.privacy import PrivacyStatement as PrivacyStatement
    from ledgerwood.trainers.base.saving import ReleasedModel as ReleasedModel
    from ledgerwood.trainers.base.schedule import Stage as Stage
    from ledgerwood.trainers.base.systems import System as System
    from ledgerwood.trainers.base.trainer import AbstractTrainer as AbstractTrainer
    from ledgerwood.trainers.boosting.plan import PrivateBoostingPlan as PrivateBoostingPlan
    from ledgerwood.trainers.boosting.training import PrivateBoostingClassifier as PrivateBoostingClassifier
    from ledgerwood.trainers.boosting.training import PrivateBoostingRegressor as PrivateBoostingRegressor
    from ledgerwood.trainers.choosing.cross_validation import private_cross_validate as private_cross_validate
    from ledgerwood.trainers.choosing.cross_validation import private_grid_search as private_grid_search
    from ledgerwood.trainers.choosing.private_search import PrivateSearch as PrivateSearch
    from ledgerwood.trainers.choosing.private_search import SearchPlan as SearchPlan
    from ledgerwood.trainers.choosing.validation_plan import ValidationPlan as ValidationPlan
    from ledgerwood.trainers.choosing.validation_results import CrossValidation as CrossValidation
    from ledgerwood.trainers.choosing.validation_results import FoldScores as FoldScores
    from ledgerwood.trainers.choosing.validation_results import GridSearch as GridSearch
    from ledgerwood.trainers.choosing.validation_results import OwnerOnly as OwnerOnly
    from ledgerwood.trainers.dpboost.plan import DPBoostPlan as DPBoostPlan
    from ledgerwood.trainers.dpboost.training import DPBoostClassifier as DPBoostClassifier
    from ledgerwood.trainers.dpboost.training import DPBoostRegressor as DPBoostRegressor
    from ledgerwood.trainers.dpxgboost.plan import DPXGBoostPlan as DPXGBoostPlan
    from ledgerwood.trainers.dpxgboost.training import DPXGBoostClassifier as DPXGBoostClassifier
    from ledgerwood.trainers.dpxgboost.training import DPXGBoostRegressor as DPXGBoostRegressor
    from ledgerwood.trainers.estimated.purchase import SchemaPurchase as SchemaPurchase
    from ledgerwood.trainers.federated.plan import FederatedPlan as FederatedPlan
    from ledgerwood.trainers.federated.training import FederatedGBDTClassifier as FederatedGBDTClassifier
    from ledgerwood.trainers.federated.training import FederatedGBDTRegressor as FederatedGBDTRegressor
    from ledgerwood.trainers.frames import predict_frame as predict_frame
    from ledgerwood.trainers.preparing.checking import check_pipeline as check_pipeline
    from ledgerwood.trainers.preparing.encoders import SchemaOneHotEncoder as SchemaOneHotEncoder
    from ledgerwood.trainers.preparing.encoders import SchemaScaler as SchemaScaler
    from ledgerwood.trainers.privatree.plan import PrivaTreePlan as PrivaTreePlan
    from ledgerwood.trainers.privatree.training import PrivaTreeClassifier as PrivaTreeClassifier
    from ledgerwood.trainers.sgbdt.plan import SGBDTPlan as SGBDTPlan
    from ledgerwood.trainers.sgbdt.training import SGBDTClassifier as SGBDTClassifier
    from ledgerwood.trainers.sgbdt.training import SGBDTRegressor as SGBDTRegressor
except ModuleNotFoundError as _missing:  # the base install: each name says which extra it needs
    __getattr__ = _extras.absent(__name__, _missing)

__all__ = _extras.own_names(vars())  # noqa: PLE0605
