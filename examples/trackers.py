"""Training tracked by MLflow or Weights & Biases: trackers.py mlflow; without a name it prints what these would get."""

import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

import rankwright as rw


class Printer:
    """A stand-in for a tracker, with the functions of MLflow that are used here."""

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Print two parameters."""
        print("parameters:", ", ".join(f"{name}={params[name]}" for name in ("n_estimators", "max_bins")))

    def log_metrics(self, numbers: Mapping[str, float], step: int) -> None:
        """Print the measure of every twentieth round."""
        if step % 20 == 0:
            print(f"round {step}: train={numbers['train']:.3f} valid={numbers['valid']:.3f}")

    def log_artifact(self, path: str) -> None:
        """Print the name of a file."""
        print(f"file: {Path(path).name}")


class WeightsAndBiases:
    """Weights & Biases, by the same functions."""

    def __init__(self) -> None:
        self.run = import_module("wandb").init(project="rankwright")

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log the parameters."""
        self.run.config.update(params)

    def log_metrics(self, numbers: Mapping[str, float], step: int) -> None:
        """Log the numbers of a round."""
        self.run.log(numbers, step=step)

    def log_artifact(self, path: str) -> None:
        """Log a file."""
        self.run.log_artifact(path, name="ranker", type="model")


def open_tracker(name: str) -> Any:
    """Return a tracker by its name, or the stand-in."""
    if name == "mlflow":
        return import_module("mlflow")
    return WeightsAndBiases() if name == "wandb" else Printer()


def main() -> go.Figure:
    train, valid, _ = rw.split_folds(rw.make_queries(100, random_state=0), 5, random_state=0)[0]
    tracker = open_tracker(sys.argv[1] if len(sys.argv) > 1 else "")
    rounds: list[dict[str, Any]] = []

    def track(found: rw.TrainingRound) -> None:
        tracker.log_metrics(found.numbers, step=found.number)
        rounds.append(found.record)

    ranker = rw.RankBoost(n_estimators=60, callbacks=[track]).fit(train, valid=valid)
    tracker.log_params(ranker.to_model().params)
    path = Path(tempfile.mkdtemp()) / "model.json"
    rw.save(ranker, path)
    tracker.log_artifact(str(path))
    return draw_curves(rounds)


def draw_curves(rounds: list[dict[str, Any]]) -> go.Figure:
    numbers = [row["round"] for row in rounds]
    lines = [go.Scatter(x=numbers, y=[row[name] for row in rounds], name=name) for name in ("train", "valid")]
    return go.Figure(lines).update_layout(xaxis_title="round", yaxis_title="ndcg@10")


if __name__ == "__main__":
    main().show()
