"""The tests; their folders mirror those of src/bangs."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
