"""Adapters for training frameworks: credit at the place where they compute advantages.

`token_rows` and `message_episodes` credit what a batch has; the module of a framework says where
its batch has it. No framework is imported, but TRL by `trl_grpo`, which subclasses its trainer, and
verl by `verl_plugin`, which verl loads.
"""

from graphcredit.integrations.step_credit import StepCredit

__all__ = ["StepCredit"]
