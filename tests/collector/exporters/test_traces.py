"""`export --to verifiers`: traces by hand, imported, credited, written with advantages."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from graphcredit.collector.exporters.episodes import NO_CREDIT, NO_STEP, NO_TOKENS, NOT_IN_STORE
from graphcredit.collector.exporters.traces import export_traces
from graphcredit.credit import assign
from graphcredit.credit.iteration.settings import settings_of
from graphcredit.credit.options import CreditOptions
from graphcredit.store import Store, open_store
from graphcredit.store.errors import InputError, NothingToExportError
from graphcredit.store.parquet.shards import open_parquet
from tests.cli.in_process import run
from tests.collector.importers.logs import episode, write_lines
from tests.collector.importers.read_back import imported


def group() -> list[dict[str, Any]]:
    """Return two rollouts of a group: their returns are 1.1 and 0.1.

    Less the mean of the others, every step of the first has the advantage 1, of the second -1.
    """
    failed = {"exit": {"score": 0.0, "weight": 1.0}, "short": {"score": 0.5, "weight": 0.2}}
    return [rollout("won"), rollout("lost", rewards=failed)]


def rollout(name: str, **trace: Any) -> dict[str, Any]:
    """Return an episode of its own, which may be changed."""
    return json.loads(json.dumps(episode(name, **trace)))


def credited(store: Path, *estimators: str) -> Store:
    opened = open_store(store)
    assign(opened, settings_of(CreditOptions(estimators=estimators or ("rloo",))))
    return opened


def credited_group(folder: Path, *estimators: str) -> tuple[Path, Store]:
    """Return the traces of the group, and a store that has them with credit."""
    source = write_lines(folder / "traces.jsonl", *group())
    imported(source, folder / "s")
    return source, credited(folder / "s", *estimators)


def advantages(line: str | bytes) -> list[list[float] | None]:
    """Return the advantages of the nodes of a line's first trace; None where unassigned."""
    nodes = json.loads(line)["traces"][0]["nodes"]
    return [node.get("advantages") for node in nodes]


def without_advantages(value: Any) -> Any:
    """Return a JSON value without the key `advantages`, wherever it is."""
    if isinstance(value, dict):
        items = value.items()
        return {key: without_advantages(item) for key, item in items if key != "advantages"}
    return [without_advantages(item) for item in value] if isinstance(value, list) else value


def test_each_sampled_token_gets_the_advantage_of_its_turn(tmp_path: Path):
    source, store = credited_group(tmp_path)
    report = export_traces(store, source, tmp_path / "out.jsonl")
    won, lost = (tmp_path / "out.jsonl").read_text().splitlines()
    # The nodes: the hall, a branch, two sampled tokens, the kitchen, one sampled token.
    assert advantages(won) == [None, None, [1.0, 1.0], None, [1.0]]
    assert advantages(lost) == [None, None, [-1.0, -1.0], None, [-1.0]]
    assert without_advantages([json.loads(won), json.loads(lost)]) == group()
    counts = report.counts
    assert (counts.num_traces, counts.num_matched, report.num_missing) == (2, 2, 0)
    assert (counts.num_assigned, counts.num_tokens) == (4, 6)
    assert counts.unassigned == {NO_STEP: 2}


def test_the_values_are_those_of_each_step(tmp_path: Path):
    source = write_lines(tmp_path / "traces.jsonl", *group())
    imported(source, tmp_path / "s", state="window:2")
    store = credited(tmp_path / "s", "graphgpo", "grpo")
    export_traces(store, source, tmp_path / "out", estimator="graphgpo")
    found = [advantages(line) for line in (tmp_path / "out").read_text().splitlines()]
    credit = open_parquet(store.shards()[0].credit_path).read().to_pylist()
    expected = {(c["trajectory_id"], c["step_index"]): c["graphgpo_advantage"] for c in credit}
    assert len({*expected.values()}) > 1
    for name, nodes in zip(("won", "lost"), found, strict=True):
        assert nodes[2] == pytest.approx([expected[name, 0]] * 2, rel=1e-6)
        assert nodes[4] == pytest.approx([expected[name, 1]], rel=1e-6)


def test_what_has_no_credit_stays_unassigned_and_is_counted(tmp_path: Path):
    silent = rollout("silent")
    for node in silent["traces"][0]["nodes"]:
        node.pop("mask", None)
    source = write_lines(tmp_path / "traces.jsonl", *group(), silent)
    imported(source, tmp_path / "s")
    store = credited(tmp_path / "s", "rloo")
    # Rollouts that came later: one in the store without credit, one not even there.
    later = rollout("later")
    write_lines(source, *group(), silent, later)
    imported(source, tmp_path / "s")
    unknown = rollout("unknown")
    unknown["traces"][0]["nodes"][2]["advantages"] = [7.0, 7.0]
    write_lines(source, *group(), silent, later, unknown)
    report = export_traces(store, source, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [advantages(line) for line in lines[2:]] == [[None] * 5] * 3
    counts = report.counts
    assert counts.unassigned == {NO_STEP: 4, NO_TOKENS: 2, NO_CREDIT: 2}
    assert (counts.num_traces, counts.num_matched) == (5, 4)
    assert (counts.unmatched, counts.names) == ({NOT_IN_STORE: 1}, ["unknown"])
    assert counts.num_replaced == 1


def test_the_store_may_have_trajectories_that_the_source_lacks(tmp_path: Path):
    source, store = credited_group(tmp_path)
    write_lines(source, group()[0])
    report = export_traces(store, source, tmp_path / "out.jsonl")
    assert (report.counts.num_matched, report.num_missing) == (1, 1)


def test_lines_without_credit_are_copied_byte_for_byte(tmp_path: Path):
    source, store = credited_group(tmp_path)
    other = '{ "traces" : [],  "env": {}, "task": {"key": "\\ud800"} }'
    cut = json.dumps(group()[0])[:100]
    source.write_text("".join(f"{line}\n" for line in (json.dumps(group()[1]), "", other)) + cut)
    report = export_traces(store, source, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text().split("\n")[1:] == ["", other, cut]
    (bad,) = report.bad_lines
    assert bad.startswith(f"{source}, line 4: it must be JSON")


def test_text_that_utf_8_lacks_keeps_its_escape(tmp_path: Path):
    won, lost = group()
    won["task"]["note"] = "half \ud800, whole é"
    source = write_lines(tmp_path / "traces.jsonl", won, lost)
    imported(source, tmp_path / "s")
    export_traces(credited(tmp_path / "s"), source, tmp_path / "out.jsonl")
    line = (tmp_path / "out.jsonl").read_text().splitlines()[0]
    assert without_advantages(json.loads(line)) == won


def test_a_folder_keeps_its_structure_and_its_compression(tmp_path: Path):
    won, lost = (json.dumps(row).encode() + b"\n" for row in group())
    source = tmp_path / "rollouts"
    first, second = source / "step_0/train/traces.jsonl.gz", source / "step_1/traces.jsonl.zst"
    first.parent.mkdir(parents=True)
    second.parent.mkdir()
    first.write_bytes(gzip.compress(won))
    with pa.CompressedOutputStream(str(second), "zstd") as file:
        file.write(lost)
    (source / "config.json").write_text("{}")
    imported(source, tmp_path / "s")
    out = tmp_path / "out"
    report = export_traces(credited(tmp_path / "s"), source, out)
    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*"))
    assert names == ["step_0/train/traces.jsonl.gz", "step_1/traces.jsonl.zst"]
    assert advantages(gzip.decompress((out / names[0]).read_bytes()))[4] == [1.0]
    with pa.CompressedInputStream(str(out / names[1]), "zstd") as file:
        assert advantages(file.read())[4] == [-1.0]
    assert report.other_files == [source / "config.json"]


def test_a_compressed_file_that_ends_too_early_gives_its_whole_lines(tmp_path: Path):
    rows = [json.dumps(row) for row in group()]
    source = write_lines(tmp_path / "traces.jsonl", *rows)
    imported(source, tmp_path / "s")
    store = credited(tmp_path / "s")
    packed = gzip.compress(f"{rows[0]}\n".encode()) + gzip.compress(rows[1].encode())[:-9]
    (tmp_path / "traces.jsonl.gz").write_bytes(packed)
    report = export_traces(store, tmp_path / "traces.jsonl.gz", tmp_path / "out.jsonl")
    assert advantages((tmp_path / "out.jsonl").read_text().splitlines()[0])[4] == [1.0]
    assert [bad.partition(": ")[2][:24] for bad in report.bad_lines] == ["the file is damaged here"]


def test_other_steps_under_the_same_id_are_not_credited(tmp_path: Path):
    source, store = credited_group(tmp_path)
    changed, lost = group()
    changed["traces"][0]["nodes"][4]["message"]["content"] = "go home"
    write_lines(source, changed, lost)
    report = export_traces(store, source, tmp_path / "out.jsonl")
    assert report.counts.unmatched == {"the store has other steps under its id": 1}
    assert advantages((tmp_path / "out.jsonl").read_text().splitlines()[0]) == [None] * 5


def test_one_id_in_two_runs_must_be_chosen(tmp_path: Path):
    source = write_lines(tmp_path / "traces.jsonl", *group())
    imported(source, tmp_path / "s")
    imported(source, tmp_path / "s", run="again")
    store = credited(tmp_path / "s")
    with pytest.raises(InputError, match=r"is in run again, iteration 5 and in run run-a"):
        export_traces(store, source, tmp_path / "out.jsonl")
    report = export_traces(store, source, tmp_path / "out.jsonl", run_id="again")
    assert report.counts.num_assigned == 4


def test_nothing_is_written_where_nothing_matches(tmp_path: Path):
    source, store = credited_group(tmp_path)
    write_lines(source, rollout("unknown"))
    with pytest.raises(NothingToExportError, match=r"in the log: unknown; in the store: lost, won"):
        export_traces(store, source, tmp_path / "out.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "traces.jsonl"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("logs", "must be outside of the source"),
        ("logs/new", "must be outside of the source"),
        ("full", "must be a new directory, or an empty one"),
    ],
)
def test_a_target_that_is_in_use_is_refused(tmp_path: Path, target: str, message: str):
    imported(write_lines(tmp_path / "logs/traces.jsonl", *group()), tmp_path / "s")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    with pytest.raises(InputError, match=message):
        export_traces(credited(tmp_path / "s"), tmp_path / "logs", tmp_path / target)


def test_the_command_reports_and_names_what_it_could_not_use(tmp_path: Path):
    source, _ = credited_group(tmp_path)
    write_lines(source, *group(), rollout("unknown"), "{")
    arguments = ("export", tmp_path / "s", tmp_path / "out.jsonl", "--to", "verifiers")
    ended = run(*arguments, "--source", source)
    assert ended.exit_code == 1
    assert ended.out.splitlines() == [
        "advantages of rloo for 4 messages (6 tokens) of 2 of 3 traces in 1 file",
        f"           2  sampled messages stay unassigned: {NO_STEP}",
        "           1  traces without a match: its trajectory is not in the store",
    ]
    assert "without a match: unknown\n" in ended.err
    assert f"copied as it is: {source}, line 4: it must be JSON" in ended.err
    assert run(*arguments).exit_code == 2
    write_lines(source, rollout("unknown"))
    again = run(*arguments, "--source", source)
    assert (again.exit_code, "must be a new file" in again.err) == (2, True)
    (tmp_path / "out.jsonl").unlink()
    nothing = run(*arguments, "--source", source)
    assert (nothing.exit_code, nothing.out) == (1, "")
    assert "nothing was written" in nothing.err


def test_several_estimators_must_be_chosen_from(tmp_path: Path):
    source, store = credited_group(tmp_path, "grpo", "rloo")
    with pytest.raises(InputError, match=r"--estimator \(grpo, rloo\)"):
        export_traces(store, source, tmp_path / "out.jsonl")
