"""`make test`, `make test-slow` and `make test-nightly` together run every test."""

import re
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _expression(target: str) -> str:
    """Return which markers a target of the Makefile asks for."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(rf'^{target}: .*\n\t.* -m "(.*?)"', makefile, re.MULTILINE)
    assert found is not None
    return found[1]


def test_every_test_runs_in_one_suite_and_a_property_thoroughly_at_night():
    for slow, nightly, hypothesis in product([False, True], repeat=3):
        markers = {"slow": slow, "nightly": nightly, "hypothesis": hypothesis}
        assert eval(_expression("test"), markers.copy()) is not (slow or nightly)
        assert eval(_expression("test-slow"), markers.copy()) is (slow and not nightly)
        assert eval(_expression("test-nightly"), markers.copy()) is (hypothesis or nightly)


def test_ci_checks_and_runs_both_suites():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines[-2:] == ["make --jobs 2 check test", "make test-slow"]
