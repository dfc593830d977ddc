"""One ALFWorld game, played by TextWorld's grammar and by the planner Fast Downward.

The planner's library holds the state and lists the actions; TextWorld's grammar says in words what
they do. What was seen once is not computed again: the actions and the plan of a state, the words of
a command, the effect of a command in a state. So any sequence of actions can be asked for at any
time, and the part of it that is known costs nothing.

Importing this file imports TextWorld and the planner, which ends the process at some errors: use
`process.py`.
"""

import re
from collections.abc import Mapping, Sequence
from ctypes import c_int
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from textworld.generator.game import EntityInfo
from textworld.logic import Proposition

from graphcredit.collector.environments.alfworld.answer import Answer
from graphcredit.collector.environments.alfworld.games import read_game
from graphcredit.collector.environments.alfworld.grammar import remember_rules
from graphcredit.collector.environments.alfworld.names import shown_names
from graphcredit.collector.environments.alfworld.problem import Problem, read_fact
from graphcredit.store.errors import InputError

# The planner has no types, and TextWorld's part for it none where the planner is not installed.
_fast_downward: Any = import_module("fast_downward")
_pddl: Any = import_module("textworld.envs.pddl.logic")

_NOTHING_HAPPENS = "Nothing happens."
"""The game's reply to what is not admissible."""
_BANNER = "-= Welcome to TextWorld, ALFRED! =-"
_TASK = "Your task is to: "
_CHECKED = "checked"
"""Fact that a thing was looked at: nothing depends on it."""
_DERIVED = "new-axiom@"
"""How the facts begin that the planner derives from others."""

_NAME = re.compile(r"\w+")
_Facts = frozenset[Proposition]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Command:
    """One action of the planner."""

    words: str
    """What the player types; the same in every state."""
    action: Any
    """The action for the grammar, with the planner's number of it."""
    num_effects: int
    """Facts that it may change."""


@dataclass(eq=False, kw_only=True, slots=True)
class _Node:
    """One state of the game."""

    number: int
    """The planner's number of the state."""
    truths: frozenset[str]
    """The facts that can change and hold, as the planner writes them."""
    facts: _Facts
    """The same for the grammar, with what is known to be false."""
    is_won: bool
    commands: "dict[str, _Command]" = field(default_factory=dict)
    """Admissible commands by their words; empty until they are asked for."""
    known: "dict[str, tuple[_Node, str]]" = field(default_factory=dict)
    """Command to the next state and the game's reply."""
    plan: tuple[str, ...] | None = None
    is_planned: bool = False


class Engine:
    """A game, and everything that was seen of it."""

    def __init__(self, file: Path, *, with_plan: bool) -> None:
        """Load a game.

        Raises:
            InputError: The file is not a game, or its rules are not as they must be.
        """
        game = read_game(file)
        missing = [k for k in ("pddl_domain", "grammar", "pddl_problem") if k not in game]
        if missing:
            raise InputError(f"a game must have the field {missing[0]}: {file} has none")
        remember_rules()
        self._with_plan = with_plan
        self._logic = _pddl.GameLogic(game["pddl_domain"], game["grammar"])
        self._planner: Any = _fast_downward.load_lib()
        self._planner.set_state_id.argtypes = [c_int]
        self._state: Any = _pddl.PddlState(self._planner, game["pddl_problem"], self._logic)
        _check_unread(self._state.task, game["grammar"], file)
        self._problem = Problem.read(self._state.task, self._logic.domain, game["pddl_problem"])
        self._things = self._name_things()
        self._names: dict[str, str] = {thing: info.name for thing, info in self._things.items()}
        self._atoms: Any = (_pddl.Atom * self._planner.get_state_size())()
        self._by_number: dict[int, _Command] = {}
        self._words: dict[str, str] = {}
        self._plans: dict[str, tuple[str, ...] | None] = {}
        self._nodes: dict[tuple[frozenset[str], _Facts], _Node] = {}
        self._conditional = _with_conditions(self._state.task)
        truths = self._truths()
        facts = frozenset(f for f in self._state.facts if _written(f) in truths)
        self._start = self._node(facts, truths, self._planner.get_state_id())
        self._here = self._start.facts
        opening = self._say("#intro#").replace(_BANNER, "").strip()
        self._opening = opening
        self._task = opening.partition(_TASK)[2].strip() or None

    def answer(self, actions: Sequence[str]) -> Answer:
        """Return what a sequence of actions leads to, from the beginning of the game."""
        node, text, is_valid = self._start, self._opening, True
        for action in actions:
            text, is_valid = _NOTHING_HAPPENS, False
            if action in node.known or action in self._commands(node):
                node, text = self._next(node, action)
                is_valid = True
        return Answer(
            state=self._described(node),
            text=text,
            task=self._task,
            actions=tuple(sorted(self._commands(node))),
            plan=self._plan(node),
            is_won=node.is_won,
            is_valid=is_valid,
        )

    def _name_things(self) -> dict[str, Any]:
        things: dict[str, Any] = {
            v.name: EntityInfo(v.name, v.type) for f in self._state.facts for v in f.arguments
        }
        for thing, name in shown_names(things).items():
            things[thing].name = name
            things[thing].definite, things[thing].indefinite = "the", "a"
        return things

    def _truths(self) -> frozenset[str]:
        """Return the facts of the planner's present state that can change and hold."""
        self._planner.get_state(self._atoms)
        names = (atom.name for atom in self._atoms)
        return frozenset(
            name.removeprefix("Atom ")
            for name in names
            if name.startswith("Atom ") and not _is_left_out(name.removeprefix("Atom "))
        )

    def _node(self, facts: _Facts, truths: frozenset[str], number: int) -> _Node:
        """Return the node of the planner's present state."""
        key = (truths, facts)
        if key not in self._nodes:
            is_won = bool(self._planner.check_goal())
            self._nodes[key] = _Node(number=number, truths=truths, facts=facts, is_won=is_won)
        return self._nodes[key]

    def _go(self, node: _Node) -> None:
        """Make a node the present state of the planner and of the grammar."""
        self._planner.set_state_id(node.number)
        for fact in self._here - node.facts:
            self._state.remove_fact(fact)
        for fact in node.facts - self._here:
            self._state.add_fact(fact)
        self._here = node.facts

    def _commands(self, node: _Node) -> dict[str, _Command]:
        """Return the admissible commands of a node; of two with the same words, the first."""
        if not node.commands and not node.is_won:
            self._go(node)
            for action in self._state.all_applicable_actions():
                command = self._command(action)
                node.commands.setdefault(command.words, command)
        return node.commands

    def _command(self, action: Any) -> _Command:
        """Return the command of an action in the present state."""
        if action.id not in self._by_number:
            self._by_number[action.id] = _Command(
                words=self._worded(action),
                action=action,
                num_effects=self._state._operators[action.id].nb_effect_atoms,
            )
        return self._by_number[action.id]

    def _worded(self, action: Any) -> str:
        """Return the words of a command: they depend on the things that its template names."""
        named = set(_NAME.findall(action.command_template))
        things = (f"{ph.name}={v.name}" for ph, v in action.mapping.items() if ph.name in named)
        key = " ".join([action.name, *things])
        if key not in self._words:
            action.command_template = self._say(action.command_template, action)
            self._words[key] = action.format_command(self._names).strip()
        return self._words[key]

    def _next(self, node: _Node, words: str) -> tuple[_Node, str]:
        """Return the next state after a command, and the game's reply."""
        if words not in node.known:
            command = self._commands(node)[words]
            self._go(node)
            facts, truths = self._apply(command, node)
            there = self._node(facts, truths, self._planner.get_state_id())
            node.known[words] = (there, self._say(command.action.feedback_rule, command.action))
        return node.known[words]

    def _apply(self, command: _Command, node: _Node) -> tuple[_Facts, frozenset[str]]:
        """Take an action at a node, which is the present state.

        Returns:
            The facts for the grammar after it, and the planner's. TextWorld's grammar takes every
            effect for real, also one whose condition does not hold.
        """
        effects: Any = (_pddl.Atom * command.num_effects)()
        self._planner.apply_operator(command.action.id, effects)
        facts, truths = set(node.facts), set(node.truths)
        for fact in (effect.get_fact(self._state.name2type) for effect in effects):
            if not _is_left_out(_written(fact)):
                self._state.remove_fact(fact.negate())
                self._state.add_fact(fact)
                facts = facts - {fact.negate()} | {fact}
                truths -= {_written(fact.negate())}
                truths |= set() if fact.is_negation else {_written(fact)}
        self._here = frozenset(facts)
        is_sure = command.action.name not in self._conditional
        return self._here, frozenset(truths) if is_sure else self._truths()

    def _say(self, text: str, action: Any = None) -> str:
        """Return what the grammar makes of a text in the present state."""
        mapping: Mapping[Any, Any] = {} if action is None else action.mapping
        variables = {ph.name: self._things[variable.name] for ph, variable in mapping.items()}
        context = {
            "state": self._state,
            "facts": [],
            "variables": variables,
            "mapping": mapping,
            "entity_infos": self._things,
        }
        return self._logic.grammar.derive(text, context)

    def _plan(self, node: _Node) -> tuple[str, ...] | None:
        if not self._with_plan:
            return None
        if not node.is_planned:
            node.plan = () if node.is_won else self._planned(node)
            node.is_planned = True
        return node.plan

    def _planned(self, node: _Node) -> tuple[str, ...] | None:
        """Return a plan from a node; None if the planner finds none."""
        plan = self._solved(self._problem.at(node.truths))
        if plan is None:
            plan = self._solved(self._problem.at(node.truths, every_place=True))
        if plan and plan[0] not in self._commands(node):
            raise InputError(f"a plan must begin with an admissible action: got {plan[0]!r}")
        return plan

    def _solved(self, problem: str) -> tuple[str, ...] | None:
        """Return the planner's plan for a problem; each is solved once."""
        if problem not in self._plans:
            _, sas = _fast_downward.pddl2sas(self._logic.domain, problem, optimize=True)
            is_found = self._planner.solve_sas(sas.encode(), False)
            operators: Any = (_fast_downward.Operator * self._planner.get_last_plan_length())()
            self._planner.get_last_plan(operators)
            names = [operator.name for operator in operators]
            plan: list[str] = self._state.plan_to_templated_actions(names, self._things)
            self._plans[problem] = tuple(plan) if is_found else None
        return self._plans[problem]

    def _described(self, node: _Node) -> str:
        """Return the facts of a state as text: a line for each relation, everything sorted."""
        lines: dict[str, list[str]] = {}
        for fact in node.truths:
            relation, *things = read_fact(fact)
            shown = " - ".join(self._names[thing] for thing in things)
            lines.setdefault(relation, []).append(shown)
        return "\n".join(f"{name}: {', '.join(sorted(lines[name]))}" for name in sorted(lines))


def _check_unread(task: Any, grammar: str, file: Path) -> None:
    """Raise InputError if a rule of the game depends on facts that the state leaves out."""
    conditions = [task.goal, *(axiom.condition for axiom in task.axioms)]
    for action in task.actions:
        conditions += [action.precondition, *(effect.condition for effect in action.effects)]
    if f"{_CHECKED}(" in grammar or any(_CHECKED in _predicates(c) for c in conditions):
        raise InputError(
            f"nothing in a game may depend on {_CHECKED!r}, which the state leaves out: a rule of "
            f"{file} does"
        )


def _with_conditions(task: Any) -> frozenset[str]:
    """Return the names of the actions with an effect that depends on the state."""
    return frozenset(
        action.name
        for action in task.actions
        if any(effect.condition.parts or _predicates(effect.condition) for effect in action.effects)
    )


def _predicates(condition: Any) -> set[str]:
    own = {condition.predicate} if hasattr(condition, "predicate") else set[str]()
    return own.union(*(_predicates(part) for part in condition.parts))


def _is_left_out(fact: str) -> bool:
    return fact.startswith((f"{_CHECKED}(", f"not_{_CHECKED}(", _DERIVED, f"not_{_DERIVED}"))


def _written(fact: Proposition) -> str:
    """Return a fact as the planner writes it."""
    return f"{fact.name}({', '.join(fact.names)})"
