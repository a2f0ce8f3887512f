"""Names that parameters, objectives and options have in scikit-learn, LightGBM, XGBoost, CatBoost and RankLib."""

from __future__ import annotations

from collections.abc import Collection, Mapping

# Name here (or LightGBM's full name): names elsewhere. A name elsewhere may stand for several names here.
_SYNONYMS: Mapping[str, str] = {
    "n_estimators": "num_boost_round num_iterations num_iteration num_round num_rounds n_iter nrounds n_rounds rounds "
    "num_trees n_trees num_tree trees tree iterations round",
    "max_iter": "max_iterations maxiter n_iter n_rounds num_iterations iterations rounds round epochs n_epochs",
    "n_epochs": "epochs epoch num_epochs max_epochs n_iter max_iter",
    "learning_rate": "eta shrinkage shrinkage_rate lr rate learning_rate_init step_size",
    "num_leaves": "max_leaves max_leaf max_leaf_nodes n_leaves num_leaf n_leaf leaf leaves",
    "min_child_samples": "min_data_in_leaf min_data min_data_per_leaf min_samples_leaf min_docs mls",
    "early_stopping_rounds": "early_stopping_round early_stopping n_iter_no_change patience estop early_stop",
    "alpha": "reg_lambda lambda_l2 lambda l2 l2_regularization l2_leaf_reg weight_decay regularization",
    "C": "c cost",
    "max_bins": "max_bin bins n_bins border_count",
    "random_state": "seed random_seed rng",
    "backend": "n_jobs nthread nthreads n_threads num_threads num_thread thread_count threads thread",
    "rankers": "estimators models",
    "n_folds": "cv n_splits",
    "measure": "metric metrics eval_metric eval_at ndcg_eval_at scoring metric2t metric2train",
    "objective": "loss loss_function application criterion",
    "loss": "objective loss_function criterion",
    "hidden": "hidden_layer_sizes hidden_sizes hidden_layers layers layer node",
    "init_model": "xgb_model base_model initial_model load",
    "max_seconds": "time_limit timeout max_time time_budget",
    "n_restarts": "n_init n_starts r",
    "tol": "tolerance tolerence epsilon eps",
    "scale": "norm normalize normalise standardize standardise scaler",
    "device": "device_type task_type",
    "optimiser": "optimizer solver",
    "activation": "nonlinearity",
    "weight_range": "weights",
    "lightgbm_params": "params lgb_params",
    "polish_rounds": "polish",
    # LightGBM's full names
    "lambda_l1": "reg_alpha l1_regularization",
    "lambda_l2": "reg_lambda l2_regularization l2_leaf_reg",
    "bagging_fraction": "subsample bagging",
    "bagging_freq": "subsample_freq",
    "feature_fraction": "colsample_bytree sub_feature rsm max_features",
    "feature_fraction_bynode": "colsample_bynode",
    "min_sum_hessian_in_leaf": "min_child_weight min_sum_hessian min_hessian",
    "min_gain_to_split": "gamma min_split_gain min_split_loss min_impurity_decrease",
    "max_depth": "depth",
    "max_bin": "max_bins border_count",
    "monotone_constraints": "monotonic_cst mc",
    "interaction_constraints": "interaction_cst",
    # objectives
    "lambdas": "lambdarank lambdamart rank:ndcg rank:map",
    "logistic": "ranknet rank:pairwise pairwise pairlogit",
    "top_one": "listnet rank_xendcg xendcg softmax listwise querysoftmax",
    "likelihood": "listmle plackett_luce",
    "squares": "regression mse l2 rmse squared_error reg:squarederror mean_squared_error queryrmse",
    "positions": "smoothndcg smoothrank approxndcg yetirank",
    "noisy_ranks": "softrank softndcg",
}
_NAMES_HERE: dict[str, tuple[str, ...]] = {}
for _here, _elsewhere in _SYNONYMS.items():
    for _name in _elsewhere.split():
        _NAMES_HERE[_name] = (*_NAMES_HERE.get(_name, ()), _here)


def find_synonym(name: str, known: Collection[str]) -> str | None:
    """Return the known name of what another library calls ``name``; None if there is no such known name.

    >>> find_synonym("eta", ["n_estimators", "learning_rate"])
    'learning_rate'
    """
    return next((here for here in _NAMES_HERE.get(name.lower(), ()) if here in known), None)
