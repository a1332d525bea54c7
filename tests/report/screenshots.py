"""Pictures for the guides: of the report page (light, dark, phone) or of the documentation site.

python -m tests.report.screenshots out/library/report.html docs
python -m tests.report.screenshots site docs
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.report.browser import Browser, browser

REPORT = (("light", 1200, 1720, False), ("dark", 1200, 1720, True), ("phone", 390, 1400, False))
SITE = (("home", "index", 1280, 800), ("tutorial", "quickstart", 1280, 800), ("reference", "api", 1280, 800))
PHONE = ("phone", "own-graph", 390, 800)


def report(tab: Browser, page: Path, folder: Path) -> None:
    for name, width, height, dark in REPORT:
        tab.open(page, width=width, dark=dark)
        start = 0 if name != "phone" else tab.js("document.querySelector('#map').offsetTop - 10")
        path = folder / f"report-{name}.png"
        tab.screenshot(path, x=0, y=start, width=width, height=height)
        shrink(path)


def site(tab: Browser, pages: Path, folder: Path) -> None:
    for name, page, width, height in (*SITE, PHONE):
        tab.open(pages / f"{page}.html", width=width)
        path = folder / f"site-{name}.png"
        tab.screenshot(path, x=0, y=0, width=width, height=height)
        shrink(path)


def shrink(path: Path) -> None:
    """A picture at most 720 points wide and of at most 200 colours."""
    original = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
    share = min(720 / original.width, 1.0)
    small = original.resize((round(original.width * share), round(original.height * share)), Image.Resampling.LANCZOS)
    palette = {"method": Image.Quantize.MAXCOVERAGE, "kmeans": 1}  # has the colours of small dots too
    small.quantize(200, **palette, dither=Image.Dither.NONE).save(path, optimize=True)


def main(page: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as tab:
        (site if page.is_dir() else report)(tab, page, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
