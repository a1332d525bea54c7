"""`python -m tests.hostile --cases 3000`: attack every command and the Python interface, say what came of it."""

import argparse
import json
import sys
from dataclasses import asdict

from tests.hostile.campaign import ATTACKS, campaign

parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
parser.add_argument("--cases", type=int, default=3000)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--first", type=int, default=0, help="the number of the first case; to look at one again")
parser.add_argument("--only", action="append", default=[], choices=ATTACKS, help="a kind of attack; can be repeated")
parser.add_argument("--without", action="append", default=[], choices=ATTACKS, help="a kind to leave out")
parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")
asked = parser.parse_args()
report = campaign(asked.cases, asked.seed, tuple(asked.only), tuple(asked.without), asked.first)
facts = {**asdict(report), "kinds": dict(report.kinds.most_common())}
if asked.json:
    print(json.dumps(facts))
else:
    for what, (count, number, kind) in sorted(report.findings.items()):
        print(f"{count:>6} × {what}  [case {number}, {kind}]")
    print(json.dumps({name: value for name, value in facts.items() if name != "findings"}))
sys.exit(not report.sound)
