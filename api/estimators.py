"""The options of the estimators: `compute(steps, estimators=GraphGpo(distance_discount=0.2))`.

The docstring of each class is the specification of its estimator: idea, formula, degenerate cases
and source. Each field has its own.
"""

from graphcredit.credit.estimators.discounted import Discounted
from graphcredit.credit.estimators.g2po import G2po
from graphcredit.credit.estimators.gigpo import Gigpo
from graphcredit.credit.estimators.graft import Graft
from graphcredit.credit.estimators.graphgpo import GraphGpo
from graphcredit.credit.estimators.grpo import Grpo
from graphcredit.credit.estimators.hgpo import Hgpo
from graphcredit.credit.estimators.milegpo import MileGpo
from graphcredit.credit.estimators.reach import Reach
from graphcredit.credit.estimators.rewardflow import RewardFlow
from graphcredit.credit.estimators.rloo import Rloo
from graphcredit.credit.estimators.sapo import Sapo
from graphcredit.credit.estimators.spo3 import Spo3
from graphcredit.credit.estimators.turn_credit import TurnCredit
from graphcredit.credit.estimators.turn_rloo import TurnRloo

__all__ = [
    "Discounted",
    "G2po",
    "Gigpo",
    "Graft",
    "GraphGpo",
    "Grpo",
    "Hgpo",
    "MileGpo",
    "Reach",
    "RewardFlow",
    "Rloo",
    "Sapo",
    "Spo3",
    "TurnCredit",
    "TurnRloo",
]
