"""The picture of docs/click-measures.md: training on clicks by the number of sessions, drawn from its tables.

``python -m benchmarks.click_picture`` writes docs/images/clicks.svg.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from rankwright.basics.files import write_atomic

ROOT = Path(__file__).parents[1]
TABLES, PICTURE = ROOT / "docs" / "click-measures.md", ROOT / "docs" / "images" / "clicks.svg"
LINES = {
    "linear pairs, grades": ("grades", "grades"),
    "linear pairs, clicks=coec": ("debiased clicks (coec)", "us"),
    "linear pairs, clicks=naive": ("clicks as they are (naive)", "naive"),
    "LightGBM, position": ("LightGBM, position", "lightgbm"),
    "XGBoost, unbiased": ("XGBoost, unbiased", "xgboost"),
}
WIDTH, HEIGHT, LEFT, TOP, GAP, FOOT = 250, 200, 44, 34, 16, 74
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f } .small { font-size: 11px; fill: #57606a }
.title { font-weight: 600; font-size: 13px } .frame { stroke: #d0d7de } polyline { fill: none; stroke-width: 2 }
.us { stroke: #0969da } .naive { stroke: #cf222e } .grades { stroke: #57606a; stroke-dasharray: 4 4 }
.lightgbm { stroke: #1a7f37 } .xgboost { stroke: #9a6700 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } .frame { stroke: #3d444d }
.us { stroke: #58a6ff } .naive { stroke: #f85149 } .lightgbm { stroke: #3fb950 } .xgboost { stroke: #d29922 }
}
"""
Table = dict[str, list[float | None]]


def read_tables(text: str) -> tuple[list[str], dict[str, Table]]:
    """Return the numbers of sessions, and the values of each method by data set, None where there is none."""
    section = text.split("\n## Study\n")[1].split("\n## ")[0]
    sessions: list[str] = []
    found: dict[str, Table] = {}
    for part in section.split("\n### ")[1:]:
        title, *lines = part.splitlines()
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        if rows and rows[0][0] == "method":
            sessions = rows[0][1:]
            found[title] = {row[0]: [float(cell) if cell else None for cell in row[1:]] for row in rows[2:]}
    return sessions, found


def draw_svg(sessions: list[str], tables: dict[str, Table]) -> str:
    """Return the picture: a panel for each data set, a line for each method."""
    width, height = len(tables) * (LEFT + WIDTH + GAP), TOP + HEIGHT + FOOT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-label="NDCG@10 on judged test queries of rankers trained on clicks, by sessions">',
        f"<style>{_STYLE}</style>",
    ]
    for number, (title, table) in enumerate(tables.items()):
        x0 = number * (LEFT + WIDTH + GAP) + LEFT
        values = [value for name in LINES for value in table.get(name, []) if value is not None]
        low, high = int(min(values) * 50) / 50, int(max(values) * 50 + 1) / 50
        out.append(f'<text class="title" x="{x0}" y="20">{escape(title)}</text>')
        for step in range(round((high - low) * 50) + 1):
            value = low + step / 50
            y = TOP + HEIGHT * (high - value) / (high - low)
            out.append(f'<line class="frame" x1="{x0}" x2="{x0 + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
            out.append(f'<text class="small" x="{x0 - 32}" y="{y + 4:.1f}">{value:.2f}</text>')
        places = [x0 + 14 + (WIDTH - 28) * i / (len(sessions) - 1) for i in range(len(sessions))]
        for place, name in zip(places, sessions, strict=True):
            out.append(
                f'<text class="small" text-anchor="middle" x="{place:.1f}" y="{TOP + HEIGHT + 16}">{name}</text>'
            )
        for name, (_, kind) in LINES.items():
            points = [
                f"{place:.1f},{TOP + HEIGHT * (high - value) / (high - low):.1f}"
                for place, value in zip(places, table.get(name, []), strict=False)
                if value is not None
            ]
            out.append(f'<polyline class="{kind}" points="{" ".join(points)}"/>')
    x = LEFT
    for title, kind in LINES.values():
        y = height - 30
        out.append(f'<polyline class="{kind}" points="{x},{y - 4} {x + 22},{y - 4}"/>')
        out.append(f'<text x="{x + 28}" y="{y}">{escape(title)}</text>')
        x += 44 + 7 * len(title)
    note = "NDCG@10 by grades on test queries, by the number of sessions with clicks."
    out.append(f'<text class="small" x="{LEFT}" y="{height - 8}">{note}</text></svg>')
    return "\n".join(out) + "\n"


def main() -> None:
    """Write the picture."""
    PICTURE.parent.mkdir(exist_ok=True)
    with write_atomic(PICTURE) as file:
        file.write(draw_svg(*read_tables(TABLES.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
