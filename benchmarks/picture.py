"""The picture of README: automatic blends beside tuned libraries, drawn from the tables of docs/BENCHMARKS.md.

``python -m benchmarks.picture`` writes docs/images/benefit.svg.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

from rankwright.basics.files import write_atomic

ROOT = Path(__file__).parents[1]
TABLES, PICTURE = ROOT / "docs" / "BENCHMARKS.md", ROOT / "docs" / "images" / "benefit.svg"
NAMES = {"auto": "rankwright auto", "lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}
WIDTH, TOP, ROW, LEFT, RIGHT, FOOT = 760, 34, 26, 150, 20, 30
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f } .small { font-size: 11px; fill: #57606a }
.title { font-weight: 600 } line { stroke: #8c959f } .zero { stroke-dasharray: 3 3 } circle { fill: #57606a }
.us text { font-weight: 600 } .us circle { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } line { stroke: #656c76 }
circle { fill: #9198a1 } .us circle { fill: #58a6ff }
}
"""


class Comparison(NamedTuple):
    """A method of a table: its mean, and by how much auto is better, with the interval of that (zeros for auto)."""

    method: str
    mean: float
    difference: float
    low: float
    high: float


def read_tables(text: str) -> dict[str, list[Comparison]]:
    """Return the comparisons of the section on automatic blends, by the title of each table."""
    section = text.split("\n## Automatic blends\n")[1].split("\n## ")[0]
    found: dict[str, list[Comparison]] = {}
    for part in section.split("\n### ")[1:]:
        title, rows = part.split("\n", 1)[0], []
        for line in part.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] in NAMES and len(cells) > 4:
                low, high = re.findall(r"[-+]?\d\.\d+", cells[4]) or ["0", "0"]
                rows.append(Comparison(cells[0], float(cells[1]), float(cells[3] or 0), float(low), float(high)))
        found[title] = rows
    return {title: rows for title, rows in found.items() if rows}


def draw_svg(tables: dict[str, list[Comparison]]) -> str:
    """Return the picture: a panel for each table, the difference of each library from auto with its 95% interval."""
    rows = [row for table in tables.values() for row in table]
    least, most = min(-row.high for row in rows), max(-row.low for row in rows)

    def place(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT - 60) * (value - least) / (most - least)

    height = sum(TOP + ROW * len(table) for table in tables.values()) + FOOT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-label="NDCG@10 of tuned libraries, less that of rankwright auto">',
        f"<style>{_STYLE}</style>",
    ]
    y, zero = 0, place(0.0)
    for title, table in tables.items():
        out.append(f'<text class="title" x="0" y="{y + 20}">{escape(title)}</text>')
        end = y + TOP + ROW * len(table) - 8
        out.append(f'<line class="zero" x1="{zero:.1f}" x2="{zero:.1f}" y1="{y + TOP - 6}" y2="{end}"/>')
        for number, row in enumerate(table):
            at = y + TOP + ROW * number + 8
            out.append(f'<g class="{"us" if row.method == "auto" else "peer"}">')
            out.append(f'<text x="10" y="{at + 4}">{NAMES[row.method]}</text>')
            ends = f'x1="{place(-row.high):.1f}" x2="{place(-row.low):.1f}"'
            out.append(f'<line stroke-width="2" {ends} y1="{at}" y2="{at}"/>')
            out.append(f'<circle cx="{place(-row.difference):.1f}" cy="{at}" r="5"/>')
            out.append(f'<text x="{WIDTH - 60}" y="{at + 4}">{row.mean:.4f}</text></g>')
        y += TOP + ROW * len(table)
    note = "NDCG@10 less that of rankwright auto on the same queries, with 95% intervals; at the right the mean."
    out.append(f'<text class="small" x="0" y="{y + 20}">{note}</text></svg>')
    return "\n".join(out) + "\n"


def main() -> None:
    """Write the picture."""
    PICTURE.parent.mkdir(exist_ok=True)
    with write_atomic(PICTURE) as file:
        file.write(draw_svg(read_tables(TABLES.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
