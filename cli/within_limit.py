"""A command under `ulimit -v` runs in a child process, whose end for want of memory is one line.

Libraries that get no memory, or no thread, abort, crash, or blame the file that they read.
"""

import os
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable

from graphcredit.store.confined.limits import MIB

_CRASHES = {-signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGSEGV, -signal.SIGTRAP}
_WANT = re.compile(
    rb"MemoryError|malloc of size|bad_alloc|out of memory|(?:launch worker|start new) thread"
    rb"|memory allocation|cannot allocate|unable to allocate|failed to map segment",
    re.IGNORECASE,
)
"""What Python and libraries say when they get no memory."""


def within_limit(command: Callable[[], None]) -> None:
    """Run a command; where address space is limited, report its end for want of memory.

    Its messages then come when it has ended.

    Raises:
        SystemExit: The command raises it; or 1, as it needs more memory.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        command()
        return
    with tempfile.TemporaryFile() as kept:
        child = os.fork()
        if not child:
            os.dup2(kept.fileno(), sys.stderr.fileno())
            _run(command)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the child, too
        signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        kept.seek(0)
        messages = kept.read()
    if code in _CRASHES or (code and _WANT.search(messages)):
        raise SystemExit(
            f"graphcredit: this needs more than the {limit // MIB} MiB of memory that `ulimit -v` "
            "allows: raise the limit, then give the same command again"
        )
    sys.stderr.write(messages.decode(errors="replace"))
    raise SystemExit(code if code >= 0 else 128 - code)


def _run(command: Callable[[], None]) -> None:
    """Run a command in this child, and end the process."""
    code = 1
    try:
        command()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
