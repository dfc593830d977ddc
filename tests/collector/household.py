"""A tiny game in the manner of ALFWorld: a pen, a cup, a shelf and a box that is closed."""

import json
from pathlib import Path
from typing import Any

DOMAIN = """
(define (domain alfred)
 (:requirements :adl :action-costs :typing)
 (:types agent location receptacle object rtype otype)
 (:predicates
  (atLocation ?a - agent ?l - location) (receptacleAtLocation ?r - receptacle ?l - location)
  (openable ?r - receptacle) (opened ?r - receptacle) (inReceptacle ?o - object ?r - receptacle)
  (checked ?r - receptacle) (receptacleType ?r - receptacle ?t - rtype)
  (objectType ?o - object ?t - otype) (holds ?a - agent ?o - object) (holdsAny ?a - agent))
 (:functions (total-cost) - number)
 (:action look :parameters (?a - agent ?l - location)
  :precondition (and (atLocation ?a ?l)) :effect (and (checked ?l)))
 (:action GotoLocation
  :parameters (?a - agent ?lStart - location ?lEnd - location ?r - receptacle)
  :precondition (and (atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd))
  :effect (and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd) (increase (total-cost) 1)))
 (:action OpenObject :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (openable ?r) (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
   (not (opened ?r)))
  :effect (and (opened ?r) (increase (total-cost) 1)))
 (:action PickupObject :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r)
   (not (holdsAny ?a)))
  :effect (and (not (inReceptacle ?o ?r)) (holds ?a ?o) (holdsAny ?a) (increase (total-cost) 1)))
 (:action PutObject :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
   (or (not (openable ?r)) (opened ?r)))
  :effect (and (inReceptacle ?o ?r) (not (holds ?a ?o)) (not (holdsAny ?a))
   (increase (total-cost) 1))))
"""

GRAMMAR = '''
grammar :: """
{
 "intro": [{"rhs": "-= Welcome to TextWorld, ALFRED! =-\\n\\nA room.\\n\\n#task#"}],
 "task": [{"rhs": "Your task is to: put a pen in the box."}],
 "look.feedback": [{"rhs": "You look around."}],
 "GotoLocation.feedback": [{"rhs": "You arrive at {r.name}."}],
 "OpenObject.feedback": [{"rhs": "You open the {r.name}."}],
 "PickupObject.feedback": [{"rhs": "You pick up the {o.name} from the {r.name}."}],
 "PutObject.feedback": [{"rhs": "You put the {o.name} in/on the {r.name}."}]
}
""";
action look { template :: "look"; feedback :: "#look.feedback#"; }
action GotoLocation { template :: "go to {r}"; feedback :: "#GotoLocation.feedback#"; }
action OpenObject { template :: "open {r}"; feedback :: "#OpenObject.feedback#"; }
action PickupObject { template :: "take {o} from {r}"; feedback :: "#PickupObject.feedback#"; }
action PutObject { template :: "put {o} in/on {r}"; feedback :: "#PutObject.feedback#"; }
'''

PROBLEM = """
(define (problem tiny)
(:domain alfred)
(:objects
 agent1 - agent
 Pen_bar_1 - object Cup_bar_1 - object
 PenType - otype CupType - otype
 ShelfType - rtype BoxType - rtype
 loc_bar_1 - location loc_bar_2 - location loc_bar_3 - location
 Shelf_bar_1 - receptacle Box_bar_1 - receptacle)
(:init
 (= (total-cost) 0)
 (atLocation agent1 loc_bar_1)
 (receptacleType Shelf_bar_1 ShelfType) (receptacleType Box_bar_1 BoxType)
 (receptacleAtLocation Shelf_bar_1 loc_bar_2) (receptacleAtLocation Box_bar_1 loc_bar_3)
 (openable Box_bar_1)
 (objectType Pen_bar_1 PenType) (objectType Cup_bar_1 CupType)
 (inReceptacle Pen_bar_1 Shelf_bar_1) (inReceptacle Cup_bar_1 Shelf_bar_1))
(:goal (and (exists (?r - receptacle) (exists (?o - object)
 (and (inReceptacle ?o ?r) (objectType ?o PenType) (receptacleType ?r BoxType))))))
)
"""

TRIAL = "trial_T1"


def write_game(
    data: Path, task: str = "pick_and_place_simple-Pen-None-Box-1", **changes: Any
) -> str:
    """Write the game below a folder of data, some fields changed; return its name.

    A change to None removes the field.
    """
    game = {"pddl_domain": DOMAIN, "grammar": GRAMMAR, "pddl_problem": PROBLEM, "solvable": True}
    game = {name: value for name, value in (game | changes).items() if value is not None}
    return write_file(data, task, json.dumps(game))


def write_file(data: Path, task: str, text: str, *, split: str = "valid_seen") -> str:
    """Write a text where a game belongs; return the game's name."""
    folder = data / "json_2.1.1" / split / task / TRIAL
    folder.mkdir(parents=True)
    (folder / "game.tw-pddl").write_text(text, encoding="utf-8")
    return f"{split}/{task}/{TRIAL}"
