"""Check the credit of an iteration against what it is made of."""

from collections.abc import Collection, Iterable, Sequence

from graphcredit.store.checks.file_rules import FILE_RULES
from graphcredit.store.checks.find_files import TableFile
from graphcredit.store.checks.violations import Violation
from graphcredit.store.layout import Store
from graphcredit.store.provenance.freshness import freshness_of
from graphcredit.store.provenance.sources import Sources

_RULES = {"stale": "stale_credit", "mixed": "mixed_credit"}


def check_age(
    store: Store, sources: Sources, steps: Sequence[TableFile], damaged: Collection[str]
) -> Iterable[Violation]:
    """Yield a violation for each estimator whose credit is stale or mixed.

    Credit is stale if its steps changed since, and mixed if a killed run replaced only some shards.
    The violation is about all credit shards of the iteration, so it names their folder.
    """
    names = sorted(f"credit/{file.relative.partition('/')[2]}" for file in steps)
    # Look at the files now, not at the earlier list: credit may have been written meanwhile.
    paths = [None if name in damaged else store.root / name for name in names]
    there = [path for path in paths if path and path.exists()]
    if not there:
        return
    run_id, iteration = steps[0].run_id, steps[0].iteration
    assert run_id is not None, "it is in the path of a step shard"
    assert iteration is not None, "likewise"
    folders = sorted({path.parent.relative_to(store.root).as_posix() for path in there})
    for state in freshness_of(sources, run_id, iteration, paths):
        if state.state in _RULES:
            rule = FILE_RULES[_RULES[state.state]]
            why = f"credit by {state.estimator}: {state.reason}"
            yield from (Violation(rule=rule, file=folder, found=why) for folder in folders)
