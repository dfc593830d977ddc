"""The command line: each command calls one stage."""

import signal


def start() -> None:
    """Run the command line; Ctrl-C before it is loaded ends it without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is begun yet
    from graphcredit.cli.main import main

    signal.signal(signal.SIGINT, before)
    main()
