"""Functions whose keywords are the options of a command: shown, completed and checked."""

import inspect
import re
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, TypeVar, cast

from graphcredit.store.options import Options, refuse_unknown

Function = TypeVar("Function", bound=Callable[..., Any])

_PLACE = r"^ +\*\*options: .*$"
"""The line of a docstring in whose place the options are listed."""


def takes_options(
    options: type[Options] | None = None, *, omit: Collection[str] = ()
) -> Callable[[Function], Function]:
    """Return a decorator that refuses an unknown keyword, and names the nearest.

    The `**options` of the function, and of its docstring, become those of the command, with their
    defaults and texts. The function makes the object of them, which checks the values.

    Args:
        options: What the function makes of `**options`.
        omit: Fields that are no keywords of it.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        kinds = signature.parameters.values()
        own = [each for each in kinds if each.kind is not inspect.Parameter.VAR_KEYWORD]
        left = {*omit, *(each.name for each in own)}
        fields = options.model_fields.items() if options else ()
        more = {name: field for name, field in fields if name not in left}
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.get_default(call_default_factory=True),
                annotation=field.annotation,
            )
            for name, field in more.items()
        ]
        known = [*(each.name for each in own), *more]

        @wraps(function)
        def checked(*values: Any, **named: Any) -> Any:
            refuse_unknown(function.__name__, named, known)
            return function(*values, **named)

        listed = [
            f"        {n}: {' '.join((f.description or '').split())}" for n, f in more.items()
        ]
        doc = function.__doc__ or ""
        checked.__doc__ = re.sub(_PLACE, lambda _: "\n".join(listed), doc, flags=re.M)
        vars(checked)["__signature__"] = signature.replace(parameters=[*own, *added])
        return cast("Function", checked)

    return decorate
