"""Processes that start quickly: each is a copy of one that has loaded what tests need, once.

Python has one such server for all contexts: whoever started it would decide what the copies of all
others have at their start. So nobody else says what it loads.
"""

from multiprocessing import get_context

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.preload"])
