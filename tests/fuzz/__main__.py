"""`python -m tests.fuzz --inputs 20000`: feed the readers, say what came of it, fail where anything was found."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.fuzz.campaign import campaign

parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
parser.add_argument("--inputs", type=int, default=20_000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--first", type=int, default=0, help="the number of the first input; to look at one again")
parser.add_argument("--only", action="append", default=[], help="a target; can be repeated")
parser.add_argument("--keep", type=Path, help="put an input of every finding into this folder")
parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")
asked = parser.parse_args()
report = campaign(asked.inputs, asked.seed, tuple(asked.only), asked.keep, asked.first)
facts = {**asdict(report), "targets": dict(report.targets.most_common())}
if asked.json:
    print(json.dumps(facts))
else:
    for name, value in facts.items():
        if name != "findings":
            print(f"{name}: {value}")
    for what, (count, number, target) in sorted(report.findings.items(), key=lambda item: -item[1][0]):
        print(f"{count:>6} × {what}  [input {number}, {target}]")
sys.exit(not report.sound)
