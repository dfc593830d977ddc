"""Is the credit of an iteration made of what the store has now, and in one way?"""

from collections.abc import Collection, Iterable, Sequence

from graphcredit.store.checks.file_rules import FILE_RULES
from graphcredit.store.checks.find_files import TableFile
from graphcredit.store.checks.violations import Violation
from graphcredit.store.credit_marks.sources import Sources
from graphcredit.store.credit_marks.state import states_of
from graphcredit.store.layout import Store

_RULES = {"stale": "stale_credit", "mixed": "mixed_credit"}


def check_age(
    store: Store, sources: Sources, steps: Sequence[TableFile], damaged: Collection[str]
) -> Iterable[Violation]:
    """Yield whose credit of an iteration is stale, or was left mixed by a run that was killed.

    All credit shards of the iteration are concerned: the violation names their folder.

    Args:
        store: The store.
        sources: What the store has.
        steps: The readable step shards of one iteration.
        damaged: Files that cannot be read, relative to the store.
    """
    names = sorted(f"credit/{file.relative.partition('/')[2]}" for file in steps)
    # As it is now, not when the files were listed: credit that is written meanwhile is no fault.
    paths = [None if name in damaged else store.root / name for name in names]
    there = [path for path in paths if path and path.exists()]
    if not there:
        return
    run_id, iteration = steps[0].run_id, steps[0].iteration
    assert run_id is not None, "it is in the path of a step shard"
    assert iteration is not None, "likewise"
    folders = sorted({path.parent.relative_to(store.root).as_posix() for path in there})
    for state in states_of(sources, store, run_id, iteration, paths):
        if state.state in _RULES:
            rule = FILE_RULES[_RULES[state.state]]
            found = f"credit by {state.estimator}: {state.reason}"
            yield from (Violation(rule=rule, file=folder, found=found) for folder in folders)
