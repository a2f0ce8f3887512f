"""The text of a page as a browser sees it: with what was packed unpacked."""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from pathlib import Path


def unpack(text: str) -> str:
    """Return a packed text."""
    return zlib.decompress(b64decode(text), -zlib.MAX_WBITS).decode()


def read_page(path: Path) -> str:
    """Return the text of a page's file, with its packed data, but without its charting library."""
    html = path.read_text(encoding="utf-8")
    html = re.sub(r'<script[^>]* id="plotly"[^>]*>[^<]*</script>', "", html)
    return re.sub(r"(<script[^>]* data-bytes[^>]*>)([^<]*)", lambda found: found[1] + unpack(found[2]), html)
