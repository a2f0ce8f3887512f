"""Weights for a hybrid search: made-up judgments and three runs as TREC files, and the weights that fuse them best."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

import rankwright as rw

NOISE = {"bm25": 1.5, "dense": 1.0, "splade": 1.2}  # of each run's view of the relevance


def write_files(folder: Path, n_queries: int = 100, n_found: int = 200, n_docs: int = 320) -> None:
    rng = np.random.default_rng(0)
    judgments: list[str] = []
    runs: dict[str, list[str]] = {name: [] for name in NOISE}
    for q in range(n_queries):
        names = rng.choice(8_000_000, n_docs, replace=False)
        relevance = rng.normal(size=n_docs)
        grades = np.clip(np.floor(relevance - 1.2) + 1, 0, 3).astype(int)
        for i in np.argsort(-(relevance + rng.normal(size=n_docs)))[:60]:  # the others nobody judged
            judgments.append(f"q{q:05d} 0 D{names[i]:07d} {grades[i]}\n")
        for name, noise in NOISE.items():
            scores = relevance + noise * rng.normal(size=n_docs)
            scores = np.exp(scores / 2) * 5 if name == "bm25" else scores
            for rank, i in enumerate(np.argsort(-scores)[:n_found], 1):
                runs[name].append(f"q{q:05d} Q0 D{names[i]:07d} {rank} {scores[i].round(6)} {name}\n")
    (folder / "qrels.txt").write_text("".join(judgments), encoding="utf-8")
    for name, lines in runs.items():
        (folder / f"{name}.run").write_text("".join(lines), encoding="utf-8")


def main() -> go.Figure:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder)
    found = rw.tune_fusion(folder / "qrels.txt", [folder / f"{name}.run" for name in NOISE], measure="ndcg@10")
    print(found)
    found.write_run(folder / "fused.run")
    print(f"fused run: {folder / 'fused.run'}")
    return draw_gains(found)


def draw_gains(found: rw.FusionResult) -> go.Figure:
    gains = found.gains[::-1]
    above, below = [g.high - g.difference for g in gains], [g.difference - g.low for g in gains]
    error = {"type": "data", "array": above, "arrayminus": below}
    bars = go.Bar(x=[g.difference for g in gains], y=[g.over for g in gains], orientation="h", error_x=error)
    return go.Figure(bars).update_layout(xaxis_title=f"{found.measure}: tuned minus this, 95% interval")


if __name__ == "__main__":
    main().show()
