"""Success relative to the other rollouts of a log: `--success median`, `--success top:0.25`."""

from collections.abc import Sequence
from statistics import median

from graphcredit.store.errors import InputError, OptionError

_TOP = "top:"


def is_relative(text: str) -> bool:
    """Return whether a rule of `--success` needs the returns of all rollouts."""
    return text == "median" or text.startswith(_TOP)


def threshold_of(text: str, returns: Sequence[float]) -> str:
    """Return the threshold that a relative rule is, given the returns of a log.

    Raises:
        OptionError: The share of `top:SHARE` is none.
        InputError: There is no return.
    """
    share = 0.5 if text == "median" else _share(text)
    if not returns:
        raise InputError(
            f"import.success {text} must have rewards to compare: no record has one. --reward "
            "names numbers of the records"
        )
    if text == "median":
        least = median(returns)
    else:
        least = sorted(returns)[-max(1, round(share * len(returns)))]
    return f"reward>={least!r}"


def _share(text: str) -> float:
    try:
        share = float(text.removeprefix(_TOP))
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise OptionError(
            f"import.success must have a share between 0 and 1 after 'top:': got {text!r}"
        )
    return share
