"""The folders of the tests mirror those of the package."""

from tests import ROOT

TESTS, PACKAGE = ROOT / "tests", ROOT / "src" / "bangs"
CROSS_CUTTING = {"contracts", "fuzz", "helpers", "hostile", "integration", "project", "theory"}


def test_every_test_file_is_named_after_a_module_of_the_same_folder() -> None:
    """`test_MODULE.py` or `test_MODULE_ASPECT.py`; `kernels/test_kernels.py` is of `kernels/__init__.py`."""
    astray = []
    for path in sorted(TESTS.rglob("test_*.py")):
        file = path.relative_to(TESTS)
        if file.parts[0] in CROSS_CUTTING:
            continue
        folder = PACKAGE / file.parent
        modules = {folder.name, *(module.stem for module in folder.glob("*.py"))}
        if not any(f"{file.stem}_".startswith(f"test_{module}_") for module in modules):
            astray.append(str(file))
    assert astray == [], "move it to the module's folder, or to a cross-cutting folder such as tests/integration"
