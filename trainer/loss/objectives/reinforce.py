"""REINFORCE: the policy gradient itself."""

from dataclasses import dataclass

from graphcredit.trainer.loss.inputs import PolicyTerms, TokenInputs


@dataclass(frozen=True, kw_only=True, slots=True)
class Reinforce:
    """A token's log-probability is raised by its advantage.

        loss = -A · logprob

    A is `advantage`; the ratio to `old` is reported and not used. Right for one update on fresh
    steps. The only weight for steps that another policy sampled is the correction's
    (`trainer/loss/importance.py`), which takes `old` recomputed. It has no options.
    Source: Williams, Machine Learning 8, 1992.
    """

    def terms(self, tokens: TokenInputs) -> PolicyTerms:
        """Return the loss of each token."""
        return PolicyTerms(
            loss=-tokens.advantage * tokens.logprob, ratio=tokens.log_ratio().exp().detach()
        )
