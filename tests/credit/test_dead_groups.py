"""Groups that the audit calls dead: no estimator that was credited tells their steps apart."""

from pathlib import Path

from graphcredit.credit.audit.run import audit
from graphcredit.credit.estimators.table import configure
from graphcredit.credit.iteration.settings import CreditSettings
from graphcredit.credit.stage import assign_credit
from tests.credit.audit_worlds import Row, making_only, win
from tests.worlds import write_store


def _dead(root: Path, rows: list[Row], *estimators: str) -> list[str]:
    """Return the tasks that the audit calls dead."""
    store = write_store(root, rows)
    assign_credit(store, CreditSettings(estimators=configure(estimators)))
    with making_only("degenerate_groups"):
        found = audit(store).findings
    return [str(place.task_id) for finding in found for place in finding.places]


def test_a_group_of_wins_is_not_dead_where_some_steps_lead_nearer_than_others(tmp_path: Path):
    won = [*win("a"), *win("b", "S wait S up M win G")]
    assert _dead(tmp_path / "returns", won, "grpo", "rloo") == ["t0"]
    assert _dead(tmp_path / "graph", won, "grpo", "graphgpo") == []
