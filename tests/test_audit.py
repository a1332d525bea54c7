"""What `make audit` makes of pip-audit's answers."""

from audit import verdict

CLEAN = {"name": "torch", "version": "2.13.0", "vulns": []}
WEAK = {"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "rich", "skip_reason": "Dependency not found on PyPI"}


def test_a_weakness_fails_and_is_named_with_its_way_out() -> None:
    assert verdict({"dependencies": [CLEAN, WEAK]}) == (True, ["old 1.0 has PYSEC-1; fixed in 1.1"])


def test_packages_that_could_not_be_checked_are_told_and_do_not_fail() -> None:
    found, lines = verdict({"dependencies": [CLEAN, UNKNOWN]})
    assert not found
    assert lines[0].startswith("advisories are out of reach from here, so 1 of 2 packages were not checked")


def test_no_weakness_is_said_too() -> None:
    assert verdict({"dependencies": [CLEAN]}) == (False, ["no known weakness in 1 packages"])
