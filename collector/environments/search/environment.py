"""The search environment: questions about countries, answered by opening pages and reading them.

There are three actions: `search[entity]` opens the entity's page, `lookup[relation]` reads one
relation of the open page, `answer[city]` ends the episode, with reward 1 for the right city.

- `state` is the open page and everything read so far, sorted. Reading something again, or in
  another order, leads to the same state, so revisits are recognised. The state does not have the
  question, which all rollouts of a group share. After the answer it only says whether that was
  right.
- `text` is the question and the state.
- Admissible actions search the entities that the question or a page has named, or answer with a
  city among them. The environment also accepts other pages and answers: a policy may know
  geography.
- The oracle's plan is the shortest one that searches only entities seen so far: it reads its way to
  the answer, although it knows it.
- `thoughts` names the entity of an action.
"""

import re
from pathlib import Path

from graphcredit.collector.environments.base import Environment, Observation, Transition
from graphcredit.collector.environments.search.facts import CITY, Facts, load_facts
from graphcredit.collector.environments.search.questions import Question, question_named

_ACTION = re.compile(r"\s*(search|lookup|answer)\s*\[(.*)\]\s*", re.IGNORECASE | re.DOTALL)


class SearchEnvironment(Environment):
    """One question, and all pages."""

    def __init__(self, question: Question, facts: Facts, *, with_oracle: bool) -> None:
        self._question = question
        self._facts = facts
        self._name_of = {_folded(name): name for name in facts.pages}
        self._hops = facts.hops_to(question.answer) if with_oracle else None
        self.reset()

    def reset(self) -> Observation:
        """Start again: no page is open, nothing was read."""
        self._page: str | None = None
        self._read: set[tuple[str, str]] = set()
        self._is_right: bool | None = None
        return self._observe()

    def step(self, action: str) -> Transition:
        """Search, look up or answer; anything else is not valid and changes nothing."""
        match = _ACTION.fullmatch(action)
        verb, argument = (match[1].lower(), _folded(match[2])) if match else ("", "")
        is_valid = self._act(verb, argument)
        is_over = self._is_right is not None
        return Transition(
            observation=self._observe(),
            reward=1.0 if self._is_right else 0.0,
            is_action_valid=is_valid,
            terminated=is_over,
            success=self._is_right is True,
        )

    def _act(self, verb: str, argument: str) -> bool:
        """Carry out an action, and return whether it was possible."""
        if verb == "answer":
            self._is_right = argument == _folded(self._question.answer)
            return True
        if verb == "search" and argument in self._name_of:
            self._page = self._name_of[argument]
            return True
        if verb == "lookup" and self._page and argument in self._facts.pages[self._page]:
            self._read.add((self._page, argument))
            return True
        return False

    def _observe(self) -> Observation:
        state = self._state()
        seen = self._seen()
        actions = self._actions(seen)
        return Observation(
            state=state,
            text=f"Question: {self._question.text}\n{state}",
            admissible_actions=tuple(sorted(actions)),
            oracle_actions=self._plan(seen),
            thoughts=actions,
            task=self._question.text,
        )

    def _state(self) -> str:
        if self._is_right is not None:
            return f"The answer is {'right' if self._is_right else 'wrong'}."
        relations = ", ".join(self._facts.pages[self._page]) if self._page else ""
        page = f"{self._page} (to look up: {relations or 'nothing'})" if self._page else "none"
        read = (
            f"{name}, {relation}: {', '.join(self._facts.pages[name][relation])}"
            for name, relation in sorted(self._read)
        )
        return "\n".join((f"Page: {page}", *read))

    def _seen(self) -> list[str]:
        """Return every entity that was named, sorted."""
        found = {
            tail for name, relation in self._read for tail in self._facts.pages[name][relation]
        }
        opened = {self._page} if self._page else set[str]()
        return sorted(found | opened | set(self._question.entities))

    def _actions(self, seen: list[str]) -> dict[str, str]:
        """Return the admissible actions, each with the thought of a scripted policy."""
        if self._is_right is not None:
            return {}
        page = self._facts.pages[self._page] if self._page else {}
        return {
            **{
                f"search[{name}]": f"The page of {name} may lead to the answer."
                for name in seen
                if name != self._page
            },
            **{f"lookup[{name}]": f"I want the {name} of {self._page}." for name in page},
            **{
                f"answer[{name}]": f"I think that the answer is {name}."
                for name in seen
                if self._facts.kinds.get(name) == CITY
            },
        }

    def _plan(self, seen: list[str]) -> tuple[str, ...] | None:
        if self._hops is None or self._is_right is False:
            return None
        if self._is_right:
            return ()
        hops = self._hops
        # Each hop costs a search and a lookup; the search is saved for the open page.
        place = min(
            (name for name in seen if name in hops),
            key=lambda name: (2 * hops[name] - (name == self._page and hops[name] > 0), name),
        )
        plan: list[str] = []
        while place != self._question.answer:
            plan += [] if place == self._page else [f"search[{place}]"]
            relation, place = min(
                (relation, tail)
                for relation, tails in self._facts.pages[place].items()
                for tail in tails
                if hops.get(tail) == hops[place] - 1
            )
            plan.append(f"lookup[{relation}]")
        return (*plan, f"answer[{place}]")


def open_search(spec: str, _: Path, with_oracle: bool) -> SearchEnvironment:
    """Open the question of a task."""
    return SearchEnvironment(question_named(spec), load_facts(), with_oracle=with_oracle)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
