"""From step shards to step-level credit: groups, states, graphs, estimators, the stage.

`graphcredit.credit(store, …)` assigns it; `help(graphcredit.credit.assigning.credit)` has the
options. The package is called so that the function is named as the command is. Nothing is loaded
before.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphcredit.credit.assigning import CreditReports


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> "CreditReports":
        """Assign credit; see `graphcredit.credit.assigning.credit`."""
        from graphcredit.credit.assigning import credit

        return credit(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
