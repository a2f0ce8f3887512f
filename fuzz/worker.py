"""The process that runs cases; ``fuzz.running`` starts and watches it."""

from __future__ import annotations

import sys
from pathlib import Path

from fuzz.running import work

if __name__ == "__main__":
    name, cases, seed, path, findings, beat_file, folder = sys.argv[1:]
    work(name, int(cases), int(seed), Path(path), Path(findings), int(beat_file), Path(folder))
