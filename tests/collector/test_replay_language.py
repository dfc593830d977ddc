"""A language model plays on from what it played."""

from pathlib import Path
from typing import Any

import pytest
import torch

from graphcredit.collector.options import ReplayOptions
from graphcredit.collector.replaying.run import replay
from graphcredit.store import open_store
from graphcredit.store.checks.run import check_store
from graphcredit.store.errors import OptionError
from graphcredit.store.sql.catalog import run_trusted_query
from tests.collector.recomputed import play
from tests.collector.talkers import CHAT_TEMPLATE, save_talker

torch.set_num_threads(1)


@pytest.mark.slow
def test_a_model_plays_on_with_the_settings_of_the_log(tmp_path: Path):
    model = save_talker(tmp_path / "policy-000001", chat_template=CHAT_TEMPLATE)
    play(tmp_path / "s", f"hf:{model}", temperature=0.7)
    store = open_store(tmp_path / "s")

    def options(**values: Any) -> ReplayOptions:
        return ReplayOptions(num_plays=3, num_decisions=4, workers=0, **values)

    with pytest.raises(OptionError, match="policy-000001, is a language model"):
        replay(store, options())
    report = replay(store, options(policy=f"hf:{model}", template="tiny"))
    assert (report.is_acting_policy, report.differences) == (True, ())
    assert (report.num_replayed, report.num_failed) == (4, 0)
    warmer = replay(store, options(policy=f"hf:{model}", template="tiny", temperature=1.0))
    assert warmer.differences == ("temperature 1.0 instead of 0.7",)
    other = save_talker(tmp_path / "policy-000002", chat_template=CHAT_TEMPLATE, seed=1)
    report = replay(store, options(policy=f"hf:{other}", template="tiny"))
    assert report.is_acting_policy is False
    assert [each.partition(" ")[0] for each in report.differences] == ["policy", "weights"]
    sql = "SELECT DISTINCT settings, is_acting_policy FROM replay ORDER BY is_acting_policy"
    found = run_trusted_query(store, sql).table["is_acting_policy"].to_pylist()
    assert found == [False, False, True]
    assert check_store(store).errors == ()
