"""Write orders.jsonl: 160 chats of a support agent with tools, as a log of OpenAI-style messages.

    python -m examples.orders > cli/orders.jsonl

A customer wants one thing refunded. The agent finds the customer, lists the orders, looks into
them, and refunds one: the right one is a success. Some chats are careful. In others the agent asks
needlessly and guesses, but for a wrong order once it knows the right one. The tools answer alike
whenever they are asked, so what the agent knows is the set of the answers so far. Each call says
whether a careful agent would make it (`is_useful`): a log seldom does, but credit can be judged by
it.
"""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

TASKS = (
    ("Ada Byron", "C17", {"O31": "a kettle", "O32": "a lamp", "O33": "a chair"}, "a lamp"),
    ("Omar Said", "C20", {"O41": "a tent", "O42": "a stove"}, "a stove"),
    ("Mei Lin", "C23", {"O51": "a scarf", "O52": "a coat", "O53": "a hat"}, "a hat"),
    ("Jan Novak", "C29", {"O61": "a drill", "O62": "a saw"}, "a drill"),
    ("Ana Cruz", "C31", {"O71": "a rug", "O72": "a desk", "O73": "a sofa"}, "a rug"),
    ("Tom Reed", "C34", {"O81": "a bike", "O82": "a pump"}, "a pump"),
    ("Ida Holm", "C37", {"O91": "a pan", "O92": "a pot", "O93": "a wok"}, "a pot"),
    ("Sami Aho", "C40", {"P11": "skates", "P12": "skis"}, "skis"),
    ("Lea Roth", "C43", {"P21": "a violin", "P22": "a flute", "P23": "a drum"}, "a drum"),
    ("Ravi Nair", "C46", {"P31": "a phone", "P32": "a radio"}, "a phone"),
    ("Eva Blum", "C49", {"P41": "a vase", "P42": "a bowl", "P43": "a jug"}, "a bowl"),
    ("Max Kern", "C52", {"P51": "a rake", "P52": "a spade"}, "a spade"),
    ("Noor Aziz", "C55", {"P61": "a shirt", "P62": "a belt", "P63": "boots"}, "boots"),
    ("Paul Okoye", "C58", {"P71": "a clock", "P72": "a watch"}, "a clock"),
    ("Rosa Diaz", "C61", {"P81": "paint", "P82": "brushes", "P83": "an easel"}, "paint"),
    ("Finn Berg", "C64", {"P91": "a kayak", "P92": "a paddle"}, "a paddle"),
    ("Yuki Mori", "C67", {"Q11": "a teapot", "Q12": "cups", "Q13": "a tray"}, "cups"),
    ("Olga Petrova", "C70", {"Q21": "a blanket", "Q22": "a pillow"}, "a pillow"),
    ("Luca Rossi", "C73", {"Q31": "a grill", "Q32": "tongs", "Q33": "an apron"}, "an apron"),
    ("Zoe Martin", "C76", {"Q41": "a camera", "Q42": "a lens"}, "a camera"),
)
"""Customer, their id, their orders, and what is to be refunded."""

CHATS_PER_TASK, MAX_CALLS = 8, 9
CARELESSNESS = (0.1, 0.9)
"""How often the agent makes any call that it can, instead of a useful one: in a careful chat, and
in a careless one."""

Call = tuple[str, str]
"""A tool and its argument."""


class Desk:
    """The tools, and what the agent has learnt from them."""

    def __init__(self, name: str, customer: str, orders: dict[str, str], wanted: str) -> None:
        self.name, self.customer, self.orders, self.wanted = name, customer, orders, wanted
        self.right = next(order for order, thing in orders.items() if thing == wanted)
        self.asked: list[Call] = []

    def possible(self) -> list[Call]:
        """Return the calls whose arguments the agent knows."""
        calls = [("read_policy", ""), ("find_customer", self.name)]
        if ("find_customer", self.name) in self.asked:
            calls.append(("list_orders", self.customer))
        if ("list_orders", self.customer) in self.asked:
            is_known = ("get_order", self.right) in self.asked
            calls += [("get_order", order) for order in self.orders]
            calls += [
                ("refund", order) for order in self.orders if order == self.right or not is_known
            ]
        return calls

    def useful(self) -> list[Call]:
        """Return the calls that a careful agent makes next."""
        if ("get_order", self.right) in self.asked:
            return [("refund", self.right)]
        unseen = [call for call in self.possible() if call not in self.asked]
        looks = [call for call in unseen if call[0] == "get_order"]
        return looks or [call for call in unseen if call[0] != "refund"]

    def answer(self, call: Call) -> dict[str, Any]:
        """Return what a tool says."""
        self.asked.append(call)
        match call:
            case ("read_policy", _):
                return {"policy": "Refund one order within 30 days. Never guess."}
            case ("find_customer", name):
                return {"customer": name, "id": self.customer}
            case ("list_orders", customer):
                return {"of": customer, "orders": list(self.orders)}
            case (_, order):
                done = call[0] == "refund"
                return {"order": order, **({} if done else {"item": self.orders[order]})}


def chats() -> Iterator[dict[str, Any]]:
    """Yield the rows of the log."""
    for number, task in enumerate(TASKS):
        for trial in range(CHATS_PER_TASK):
            yield chat(number, trial, Desk(*task))


def chat(number: int, trial: int, desk: Desk) -> dict[str, Any]:
    """Return one row: the messages, and a reward of 1 for the right refund."""
    chance = random.Random(100 * number + trial)
    carelessness = chance.choice(CARELESSNESS)
    request = f"I am {desk.name}. Please refund {desk.wanted}."
    messages: list[dict[str, Any]] = [{"role": "user", "content": request}]
    call: Call = ("", "")
    while call[0] != "refund" and len(desk.asked) < MAX_CALLS:
        is_careless = chance.random() < carelessness
        useful = desk.useful()
        call = chance.choice(desk.possible() if is_careless else useful)
        function = {"name": call[0], "arguments": json.dumps({"of": call[1]} if call[1] else {})}
        use = {"id": f"call-{len(desk.asked)}", "type": "function", "function": function}
        label = {"is_useful": call in useful}
        messages.append({"role": "assistant", "content": None, "tool_calls": [use], **label})
        content = json.dumps(desk.answer(call))
        messages.append({"role": "tool", "tool_call_id": use["id"], "content": content})
    is_right = call == ("refund", desk.right)
    head = {"task_id": f"refund-{number}", "trial": trial, "reward": float(is_right)}
    return head | {"messages": messages}


def main() -> None:
    """Write the log to stdout."""
    for row in chats():
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
