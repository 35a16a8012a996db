"""Floor 5: trainers, post-processing of releases only."""

from ledgerwood import _extras

try:
    from ledgerwood.trainers.cross_validation import CrossValidation as CrossValidation
    from ledgerwood.trainers.cross_validation import FoldScores as FoldScores
    from ledgerwood.trainers.cross_validation import GridSearch as GridSearch
    from ledgerwood.trainers.cross_validation import OwnerOnly as OwnerOnly
    from ledgerwood.trainers.cross_validation import private_cross_validate as private_cross_validate
    from ledgerwood.trainers.cross_validation import private_grid_search as private_grid_search
    from ledgerwood.trainers.dpboost import DPBoostPlan as DPBoostPlan
    from ledgerwood.trainers.dpboost_estimators import DPBoostClassifier as DPBoostClassifier
    from ledgerwood.trainers.dpboost_estimators import DPBoostRegressor as DPBoostRegressor
    from ledgerwood.trainers.dpxgboost import DPXGBoostPlan as DPXGBoostPlan
    from ledgerwood.trainers.dpxgboost_estimators import DPXGBoostClassifier as DPXGBoostClassifier
    from ledgerwood.trainers.dpxgboost_estimators import DPXGBoostRegressor as DPXGBoostRegressor
    from ledgerwood.trainers.federated_estimators import FederatedGBDTClassifier as FederatedGBDTClassifier
    from ledgerwood.trainers.federated_estimators import FederatedGBDTRegressor as FederatedGBDTRegressor
    from ledgerwood.trainers.federated_plan import FederatedPlan as FederatedPlan
    from ledgerwood.trainers.pipelines import check_pipeline as check_pipeline
    from ledgerwood.trainers.privacy import PrivacyStatement as PrivacyStatement
    from ledgerwood.trainers.privatree import PrivaTreePlan as PrivaTreePlan
    from ledgerwood.trainers.privatree_estimators import PrivaTreeClassifier as PrivaTreeClassifier
    from ledgerwood.trainers.schema_encoders import SchemaOneHotEncoder as SchemaOneHotEncoder
    from ledgerwood.trainers.schema_encoders import SchemaScaler as SchemaScaler
    from ledgerwood.trainers.sgbdt import SGBDTPlan as SGBDTPlan
    from ledgerwood.trainers.sgbdt_estimators import SGBDTClassifier as SGBDTClassifier
    from ledgerwood.trainers.sgbdt_estimators import SGBDTRegressor as SGBDTRegressor
    from ledgerwood.trainers.tuning import PrivateSearch as PrivateSearch
    from ledgerwood.trainers.tuning import SearchPlan as SearchPlan
    from ledgerwood.trainers.validation_plan import ValidationPlan as ValidationPlan
except ModuleNotFoundError as _missing:  # the base install: each name says which extra it needs
    __getattr__ = _extras.absent(__name__, _missing)

__all__ = _extras.own_names(vars())  # noqa: PLE0605
