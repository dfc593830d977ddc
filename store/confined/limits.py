"""The limits that a confined process sets for itself before it reads what a stranger wrote."""

import resource
import signal
from pathlib import Path

MIB = 1 << 20

TOO_LARGE = 12
"""Exit status of a confined process that ran out of memory."""

OVERHEAD = 144 * MIB
"""Memory of the process beyond its limit, for Python's objects and what it is about to send."""


def limit_process(memory: int) -> None:
    """Limit this process's memory, and let it write no file."""
    limit_memory(memory)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_time(seconds: float) -> None:
    """Let the system kill this process after some seconds of processor time; 0 for never.

    The default action of the signal kills the process, whatever code is running.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def limit_memory(memory: int) -> None:
    """Limit this process's own memory to `memory` plus `OVERHEAD`.

    The limits that libraries keep ignore their lists, strings and results, so the system enforces
    one. It counts every writable page, touched or not; the limit is set to the current count plus
    the memory that is still free to use. Pages of libraries do not count: the system decides how
    many are resident, and can drop them.
    """
    sizes = _memory_sizes()
    free = memory + OVERHEAD - sizes["RssAnon"]
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = sizes["VmData"] + max(free, 0)
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def _memory_sizes() -> dict[str, int]:
    """Return the memory sizes of this process in bytes, under the names of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return {
        name: int(value.removesuffix(" kB")) << 10
        for name, _, value in (line.partition(":") for line in lines)
        if value.endswith(" kB")
    }
