"""Does evidence rank definitions of a state as their worth does, in games without an exact one?

    python -m experiments.credit_quality.states --out states      # ALFWorld needs $ALFWORLD_DATA

Written down before the first run:

**Worth** of a definition: how credit by its states follows the truth. That is Spearman's
correlation of the advantage of `reach` with the progress of the steps (the oracle's distance before
a step, less that after it) within each game; mean over games; constant credit counts 0.

**Log.** Games and policies of credit quality, 8 rollouts a game, without lists of actions.

**Definitions.** Those of the exact worlds; the text that is read, where that is not the state; the
true state with typing errors in 3 of 10 visits; with a light that matters to nothing, which each
step switches with probability 1/4.

**Agreement** is Spearman's correlation of evidence and worth over the definitions, by all games of
a world; its 95 % interval is from drawing games with replacement. Evidence agrees with worth where
it is .5 at least, with an interval above 0.

**Choice.** 400 logs of 24 games are drawn without replacement. What is recommended in one is right
if it is the true state, and good if it is worth, over all games of the world, at most .05 less than
the best definition. It must be good in 9 of 10.

Added after ALFWorld and Sokoban: the command recommends only what is beyond chance, so that is
counted too, besides what would be recommended beyond chance or not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from experiments import options
from experiments.credit_quality.judge import Condition, steps_of
from experiments.credit_quality.worlds import play, playable
from experiments.credit_truth.states.definitions import NAMES, Visits, definitions, restated
from experiments.episodes import Bools, Floats, Ints, credit_of
from experiments.ranks import spearman, spearman_within
from experiments.report import publish
from graphcredit.credit.evidence.definition import Definition
from graphcredit.credit.evidence.judge import evidence_in
from graphcredit.credit.evidence.knowledge import Knowledge
from graphcredit.credit.evidence.report import best_of, recommended
from graphcredit.store import create_store

GAMES = {"textworld": 40, "alfworld": 36, "sokoban": 60}

NUM_LOGS, GAMES_OF_LOG, NUM_DRAWS = 400, 24, 1_000

_TYPING_ERRORS, _SWITCHED = 0.3, 0.25


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--world", action="append", choices=list(GAMES), help="by default all")
    given = parser.parse_args()
    log = create_store(given.out / "log")
    rows = list[pl.DataFrame]()
    for name in given.world or playable(GAMES):
        games = play(log, name, num_tasks=GAMES[name], num_workers=given.workers)
        condition = Condition(log=log.root, world=name, lists="none", games=tuple(games))
        rows += [judge(steps_of(condition)).select(pl.lit(name).alias("world"), pl.all())]
    publish(pl.concat(rows), given.out, "games")


def judge(steps: pa.Table) -> pl.DataFrame:
    """Return a row for each definition: what evidence says, its worth, and how both agree.

    The figures of the agreement are those of all definitions, so they are in each row.
    """
    stated = dict(_restated(steps))
    known = _knowledge(steps, stated)
    worth = {name: _worth(table) for name, table in stated.items()}
    played = _Played(known, np.stack(list(worth.values())), _is_mixed(steps))
    rng = np.random.default_rng(0)
    size = len(played.is_mixed)
    drawn = [played.agreement(rng.integers(size, size=size)) for _ in range(NUM_DRAWS)]
    number = min(GAMES_OF_LOG, size)
    logs = [rng.choice(size, number, replace=False) for _ in range(NUM_LOGS)]
    tied = [played.recommended(games) for games in logs]
    told = [played.best(games) for games in logs]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    of_all = {
        "num_games": size,
        "num_mixed": int(played.is_mixed.sum()),
        "agreement": played.agreement(np.arange(size)),
        "agreement_low": float(low),
        "agreement_high": float(high),
        "agreement_of_logs": float(np.mean([played.agreement(games) for games in logs])),
    }
    return pl.DataFrame(
        {
            "definition": name,
            "company": each.company,
            "information": each.information().value,
            "guidance": each.guidance().value,
            "evidence": each.evidence().value,
            "error": each.evidence().error,
            "worth": float(played.mean_worth[place]),
            "tied_share": tied.count(name) / NUM_LOGS,
            "told_share": told.count(name) / NUM_LOGS,
        }
        | of_all
        for place, (name, each) in enumerate(known.items())
    )


@dataclass(frozen=True, slots=True)
class _Played:
    """What is known of each definition in the games of a world."""

    knowledge: dict[str, Knowledge]
    worth: Floats
    """[num_definitions, num_games] NaN where the progress does not differ."""
    is_mixed: Bools
    """[num_games] whether the rollouts end differently: evidence sees no others."""

    @property
    def mean_worth(self) -> Floats:
        """[num_definitions]."""
        return np.nanmean(self.worth, 1)

    def agreement(self, games: Ints) -> float:
        """Return Spearman's correlation of evidence and worth over the definitions."""
        seen = self._seen(games)
        told = [each.evidence(seen).value for each in self.knowledge.values()]
        worth = np.nanmean(self.worth[:, games], 1)
        return spearman(pl.Series(told).round(9), pl.Series(worth))

    def recommended(self, games: Ints) -> str:
        """Return what would be recommended by some games, beyond chance or not."""
        return recommended(self.knowledge, self._seen(games))

    def best(self, games: Ints) -> str | None:
        """Return what the command recommends."""
        return best_of(self.knowledge, self._seen(games))

    def _seen(self, games: Ints) -> Ints:
        """Return the places of some games among the mixed ones."""
        return (np.cumsum(self.is_mixed) - 1)[games[self.is_mixed[games]]]


def _restated(steps: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield each definition and the steps with its states."""
    rng = np.random.default_rng(1)
    visits = visits_of(steps, rng)
    size = len(visits.state)
    for name, states in zip(NAMES, definitions(visits, rng), strict=True):
        yield name, restated(steps, states)
    if steps["observation"].null_count == 0:
        yield "text", restated(steps, visits.view)
    wrong = rng.random(size) < _TYPING_ERRORS
    yield "noisy", restated(steps, np.where(wrong, size + np.arange(size), visits.state))
    switched = rng.random(size) < np.where(visits.time == 0, 0.5, _SWITCHED)
    yield "with a light", restated(steps, visits.state * 2 + np.cumsum(switched) % 2)


def visits_of(steps: pa.Table, rng: np.random.Generator) -> Visits:
    """Return the visits of steps, which are sorted by game, episode and time."""
    frame = pl.DataFrame(steps.select(["task_id", "step_index", "state", "next_state", "action"]))
    has_text = steps["observation"].null_count == 0
    frame = frame.with_columns(
        pl.Series("view", steps["observation"]).fill_null(frame["state"]),
        episode=(pl.col("step_index") == 0).cum_sum(),
    )
    end = frame.group_by("episode", maintain_order=True).last()
    end = end.with_columns(
        pl.col("step_index") + 1,
        state="next_state",
        view=pl.format("after {}", "episode") if has_text else "next_state",
    )
    before = pl.col("action").shift(1).over("episode", order_by="step_index")
    visits = (
        pl.concat([frame, end.select(frame.columns)])
        .sort("episode", "step_index")
        .with_columns(before=before)
    )
    state, game = _codes(visits, "task_id", "state"), _codes(visits, "task_id")
    game_of_state = np.zeros(int(state.max()) + 1, np.int64)
    game_of_state[state] = game
    order = np.lexsort((rng.random(len(game_of_state)), game_of_state))
    return Visits(
        state=state,
        shuffled=np.argsort(order)[state],
        view=_codes(visits, "view"),
        time=visits["step_index"].to_numpy().astype(np.int64),
        last_action=_codes(visits, "before"),
    )


def _codes(visits: pl.DataFrame, *names: str) -> Ints:
    """Return equal numbers where texts are equal, from 0; -1 where one is null."""
    text = pl.concat_str(names, separator="\n")
    return visits.select(text.rank("dense").cast(pl.Int64).fill_null(0) - 1).to_series().to_numpy()


def _knowledge(steps: pa.Table, stated: dict[str, pa.Table]) -> dict[str, Knowledge]:
    """Return what each definition tells, by the log alone."""
    every = [
        Definition(name=name, restate=lambda _, *, read, table=table: table)
        for name, table in stated.items()
    ]
    report = evidence_in([steps], every)
    assert report is not None, "games were played to their ends"
    return {name: report.knowledge[name] for name in stated}


def _worth(steps: pa.Table) -> Floats:
    """Return [num_games] the rank correlation of the advantage of `reach` with the progress."""
    credit = credit_of(steps, "reach")
    judged = pl.DataFrame(steps.select(["task_id", "oracle_distance", "next_oracle_distance"]))
    judged = judged.with_columns(
        pl.Series("credit", credit["reach_advantage"]),
        truth=pl.col("oracle_distance") - pl.col("next_oracle_distance"),
    )
    return spearman_within(judged, "task_id")["correlation"].to_numpy()


def _is_mixed(steps: pa.Table) -> Bools:
    """Return [num_games] whether the rollouts of a game end differently."""
    returns = (
        pl.DataFrame(steps.select(["task_id", "trajectory_id", "reward"]))
        .group_by("task_id", "trajectory_id", maintain_order=True)
        .agg(pl.col("reward").sum())
    )
    of_game = returns.group_by("task_id", maintain_order=True).agg(
        pl.col("reward").max() - pl.col("reward").min() > 0
    )
    return of_game["reward"].to_numpy()


if __name__ == "__main__":
    main()
