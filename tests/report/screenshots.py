"""Pictures of a page for the guides: light, dark and phone.

python -m tests.report.screenshots out/library/report.html docs
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.report.browser import browser

SHOTS = (("light", 1200, 1720, False), ("dark", 1200, 1720, True), ("phone", 390, 1400, False))


def main(page: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as tab:
        for name, width, height, dark in SHOTS:
            tab.open(page, width=width, dark=dark)
            start = 0 if name != "phone" else tab.js("document.querySelector('#map').offsetTop - 10")
            path = folder / f"report-{name}.png"
            tab.screenshot(path, x=0, y=start, width=width, height=height)
            whole = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
            share = 720 / width if width > 720 else 1.0
            small = whole.resize((round(whole.width * share), round(whole.height * share)), Image.Resampling.LANCZOS)
            small.quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
