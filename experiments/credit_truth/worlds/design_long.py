"""Long ways for design: what decides comes early or seldom, the rest is routine.

Like agents in use: they commit, work on for 30 to 200 steps, and learn at the end whether it was
right. In some worlds the state shows what was chosen or spoilt, in others it does not; in some two
rollouts hardly ever see the same text.
"""

from experiments.credit_truth.world import World, enumerate_world

_Commit = tuple[str, int, str]
_Record = tuple[str, int, bool]
_Setup = tuple[str, frozenset[int], int, str]
_Line = tuple[int, bool]
_Inbox = tuple[str, int, bool]


def approach() -> World:
    """Code: one of three approaches, then forty steps of routine; nothing shows which."""
    passes, length = {"rewrite": 0.05, "patch": 0.97, "wrap": 0.5}, 40

    def outcomes(state: _Commit, action: str) -> dict[_Commit, float]:
        chosen, step, _ = state
        if step == 0 or action in passes:
            return {(action, 1, "chosen"): 1.0} if step == 0 and action in passes else {}
        if step < length:
            return {(chosen, step + 1, action): 1.0}
        ends = {(chosen, 0, "passed"): passes[chosen], (chosen, 0, "failed"): 1 - passes[chosen]}
        return ends if action == "test" else {(chosen, step, "not tested"): 1.0}

    return enumerate_world(
        name="approach",
        horizon=50,
        actions=(*passes, "edit", "look", "test"),
        starts={("", 0, ""): 1.0},
        outcomes=outcomes,
        view=lambda state: f"step {state[1]}, last: {state[2]}",
        end=lambda state: {"passed": True, "failed": False}.get(state[2]),
    )


def record() -> World:
    """Support: the record that is opened stays in sight; a wrong one can be noticed in time."""
    right, records, length, last_check = "lee", ("lee", "li", "leigh", "lea"), 55, 25

    def outcomes(state: _Record, action: str) -> dict[_Record, float]:
        opened, step, _ = state
        if not opened or action in records:
            return {(action, 1, False): 1.0} if not opened and action in records else {}
        if action == "verify" and step <= last_check:
            found = {("", 0, False): 0.5} if opened != right else {}
            return {**found, (opened, step + 1, False): 1.0 - sum(found.values())}
        if step < length:
            return {(opened, step + 1, False): 1.0}
        return {(opened, step, True): 0.96, ("", step, True): 0.04}

    return enumerate_world(
        name="record",
        horizon=80,
        actions=(*records, "talk", "note", "verify"),
        starts={("", 0, False): 1.0},
        outcomes=outcomes,
        view=lambda state: f"record {state[0]}, message {state[1]}{', closed' * state[2]}",
        end=lambda state: (state[0] == right) if state[2] else None,
    )


def setup() -> World:
    """Code: a version is pinned, files are read in any order, and few tries read alike."""
    breaks, files, length = {"pin": 0.02, "latest": 0.6, "skip": 0.95}, 5, 24

    def outcomes(state: _Setup, action: str) -> dict[_Setup, float]:
        health, read, step, tested = state
        if not health or action in breaks:
            if health or action not in breaks:
                return {}
            return {
                ("broken", read, 0, ""): breaks[action],
                ("fine", read, 0, ""): 1 - breaks[action],
            }
        if len(read) < files:
            file = int(action[-1]) if action.startswith("read") else -1
            return {(health, read | {file}, 0, ""): 1.0} if file >= 0 and file not in read else {}
        if action == "write":
            return {(health, read, step + 1, tested): 1.0} if step < length else {}
        if action == "mend":
            return {("fine", read, step, ""): 0.5, state: 0.5} if tested == "red" else {}
        if step < length or action not in ("test", "hand in") or (tested and action == "test"):
            return {}
        if action == "test":
            return {(health, read, step, "red" if health == "broken" else "green"): 1.0}
        return {(health, read, step, "handed in"): 1.0}

    return enumerate_world(
        name="setup",
        horizon=45,
        actions=(
            *breaks,
            *(f"read {file}" for file in range(files)),
            "write",
            "test",
            "mend",
            "hand in",
        ),
        starts={("", frozenset[int](), 0, ""): 1.0},
        outcomes=outcomes,
        view=lambda state: (
            f"{'set up' if state[0] else 'new'}, read {sorted(state[1])}, "
            f"step {state[2]} {state[3]}"
        ),
        own=lambda state: 5 < state[2] < length,
        end=lambda state: state[0] == "fine" if state[3] == "handed in" else None,
    )


def pipeline() -> World:
    """Three gates in 120 steps; what is spoilt at one of them shows nowhere before the end."""
    length, gates = 120, (5, 45, 85)
    spoils = {"check": 0.02, "trust": 0.3, "force": 0.7}

    def outcomes(state: _Line, action: str) -> dict[_Line, float]:
        step, spoilt = state
        if (step in gates) != (action in spoils):
            return {}
        chance = 1.0 if spoilt else spoils.get(action, 0.0)
        return {(step + 1, True): chance, (step + 1, False): 1.0 - chance}

    return enumerate_world(
        name="pipeline",
        horizon=length,
        actions=(*spoils, "continue", "log"),
        starts={(0, False): 1.0},
        outcomes=outcomes,
        view=lambda state: f"stage {state[0]}",
        end=lambda state: not state[1] if state[0] == length else None,
    )


def inbox() -> World:
    """Mail: fast work misses one now and then, and no two rollouts have the same mail."""
    length, misses = 100, {"careful": 0.004, "fast": 0.16}

    def outcomes(state: _Inbox, action: str) -> dict[_Inbox, float]:
        mode, step, missed = state
        if (not mode) != (action in misses):
            return {}
        if not mode:
            return {(action, 0, False): 1.0}
        chance = 1.0 if missed else misses[mode] if step % 8 == 0 else 0.0
        return {(mode, step + 1, True): chance, (mode, step + 1, False): 1.0 - chance}

    return enumerate_world(
        name="inbox",
        horizon=length + 1,
        actions=(*misses, "answer", "file"),
        starts={("", 0, False): 1.0},
        outcomes=outcomes,
        view=lambda state: f"{state[0]}, mail {state[1]}",
        own=lambda state: state[1] > 0,
        end=lambda state: not state[2] if state[1] == length else None,
    )
