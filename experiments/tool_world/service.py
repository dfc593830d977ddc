"""The service: what is in its database, and what each call does to it.

Everything is a function of the situation, so that all situations of a task can be searched.
"""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any, Literal

from experiments.tool_world.names import parse_name

Kind = Literal["cancel", "return", "address"]
Result = dict[str, Any]

ITEMS = ("lamp", "desk", "kettle", "chair", "clock", "rug")
CUSTOMERS = ("Ada Byron", "Alan Cole", "Grace Hill", "Kurt Lane")
STREETS = ("12 Elm Street", "4 Mill Lane", "77 Harbour Road", "9 Oak Avenue")
_STARTS = {"cancel": "pending", "return": "delivered", "address": "pending"}
_ENDS = {"cancel": "cancelled", "return": "returned", "address": "pending"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """An order as the task has it."""

    order_id: str
    item: str
    starts: str
    """Its status at first: pending, or delivered."""
    wish: Kind | None
    """What the user wants done to it; None: it is to stay as it is."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that decides what calls do from here on."""

    orders: tuple[tuple[str, bool], ...]
    """Of each order its status, and whether it goes to the new address."""
    read: tuple[bool, ...]
    """Which orders the agent has read."""
    known: int = 0
    """0: nobody; 1: the customer; 2: the orders, too."""
    told: int = 1
    """How many wishes the user has told."""
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """One task: a customer, the orders, and what is wanted."""

    customer: str
    customer_id: str
    streets: tuple[str, str]
    """The address that the customer has, and the new one."""
    orders: tuple[Order, ...]

    @property
    def wishes(self) -> list[Order]:
        """The orders with a wish, in the order in which the user tells them."""
        return [order for order in self.orders if order.wish]

    @property
    def start(self) -> Situation:
        """The situation at first."""
        orders = tuple((order.starts, False) for order in self.orders)
        return Situation(orders=orders, read=(False,) * len(orders))

    @property
    def everything(self) -> Situation:
        """The situation in which everything is known and nothing changed: all calls can be made."""
        read = (True,) * len(self.orders)
        return replace(self.start, read=read, known=2, told=len(self.wishes))

    def score(self, now: Situation) -> float:
        """Return the share of wishes that are met, halved where another order was changed."""
        wanted = [
            (_ENDS[order.wish] if order.wish else order.starts, order.wish == "address")
            for order in self.orders
        ]
        pairs = list(zip(self.orders, now.orders, wanted, strict=True))
        met = sum(is_now == wish for order, is_now, wish in pairs if order.wish)
        is_clean = all(is_now == wish for order, is_now, wish in pairs if not order.wish)
        return met / len(self.wishes) * (1.0 if is_clean else 0.5)

    def calls(self, now: Situation) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the calls that can be made with what is known: tool and arguments."""
        if now.is_over:
            return
        yield "find_customer", {"email": self.email}
        yield "get_policy", {"topic": "orders"}
        yield "ask_user", {"question": "Is there anything else?"}
        yield "finish", {}
        if now.known >= 1:
            yield "get_customer", {"customer_id": self.customer_id}
            yield "list_orders", {"customer_id": self.customer_id}
        if now.known >= 2:
            for order, is_read in zip(self.orders, now.read, strict=True):
                for tool in ("get_order", "track_parcel", *(_CHANGES if is_read else ())):
                    yield tool, {"order_id": order.order_id}
                for street in self._streets_told(now) if is_read else ():
                    yield "change_address", {"order_id": order.order_id, "address": street}

    def call(self, now: Situation, tool: str, arguments: Any) -> tuple[Situation, Result] | None:
        """Return the situation after a call, and its result; None if it cannot be made."""
        if (tool, arguments) not in self.calls(now):
            return None
        if "order_id" in arguments:
            names = [order.order_id for order in self.orders]
            return self._on_order(now, tool, names.index(arguments["order_id"]), arguments)
        match tool:
            case "find_customer":
                return replace(now, known=max(now.known, 1)), {"customer_id": self.customer_id}
            case "get_customer":
                home = {"name": self.customer, "email": self.email, "address": self.streets[0]}
                return now, {"customer_id": self.customer_id} | home
            case "list_orders":
                listed = [{"order_id": each.order_id} for each in self.orders]
                return replace(now, known=2), {"orders": listed}
            case "ask_user":
                return replace(now, told=min(now.told + 1, len(self.wishes))), {}
            case "finish":
                return replace(now, is_over=True), {"closed": True}
            case _:
                return now, {"policy": "Change only what the customer asks for."}

    def _on_order(
        self, now: Situation, tool: str, place: int, arguments: dict[str, str]
    ) -> tuple[Situation, Result]:
        (status, is_new), order = now.orders[place], self.orders[place]
        its: Result = {"order_id": order.order_id}
        if tool == "track_parcel":
            return now, its | {"parcel": "delivered" if order.starts == "delivered" else "packed"}
        if tool == "get_order":
            read = (*now.read[:place], True, *now.read[place + 1 :])
            its |= {"items": [{"name": order.item, "count": 1}, {"name": "manual", "count": 1}]}
            its |= {"status": status, "address": self.streets[is_new]}
            return replace(now, read=read), its
        needed, after = _CHANGES.get(tool, (("pending",), "pending"))
        if status not in needed:
            return now, its | {"error": f"the order is {status}"}
        is_new = arguments.get("address", self.streets[is_new]) == self.streets[1]
        orders = (*now.orders[:place], (after, is_new), *now.orders[place + 1 :])
        return replace(now, orders=orders), its | {"status": after, "address": self.streets[is_new]}

    def _streets_told(self, now: Situation) -> tuple[str, ...]:
        told = any(order.wish == "address" for order in self.wishes[: now.told])
        return self.streets if told else self.streets[:1]

    @property
    def email(self) -> str:
        """The customer's address for mail, which the user says first."""
        return f"{self.customer.split()[0].lower()}@example.com"


_CHANGES: dict[str, tuple[tuple[str, ...], str]] = {
    "cancel_order": (("pending",), "cancelled"),
    "return_order": (("delivered",), "returned"),
    "refund_order": (("cancelled", "returned"), "refunded"),
}
"""Tools that change an order for good: the status that it must have, and the one it gets."""


@lru_cache(64)
def service_named(spec: str) -> Service:
    """Return the service of a task; equal names give equal services anywhere."""
    num_wishes, seed = parse_name(spec)
    random = Random(f"tools {spec}")
    kinds: list[Kind] = random.sample(["cancel", "return", "address"], num_wishes)
    items = random.sample(ITEMS, num_wishes + 1)
    numbers = random.sample(range(100, 1000), num_wishes + 1)
    # The order without a wish is as the first one with a wish, so that they can be mistaken.
    wished: list[Kind | None] = [*kinds, None]
    orders = [
        Order(order_id=f"O{number}", item=item, starts=_STARTS[wish or kinds[0]], wish=wish)
        for number, item, wish in zip(numbers, items, wished, strict=True)
    ]
    home, new = random.sample(STREETS, 2)
    customer = CUSTOMERS[seed % len(CUSTOMERS)]
    customer_id = f"C{random.randrange(100, 1000)}"
    return Service(customer, customer_id, (home, new), tuple(orders))


class Distances:
    """The least number of calls from each situation of a task to success."""

    def __init__(self, service: Service) -> None:
        """Search the task forwards for all situations, and backwards for their distances."""
        self._service = service
        before: dict[Situation, list[Situation]] = {service.start: []}
        open_ = deque(before)
        while open_:
            now = open_.popleft()
            for then in self._after(now).values():
                if then not in before:
                    before[then] = []
                    open_.append(then)
                if then != now:
                    before[then].append(now)
        self._of = {now: 0 for now in before if now.is_over and service.score(now) == 1.0}
        open_ = deque(self._of)
        while open_:
            now = open_.popleft()
            for earlier in before[now]:
                if earlier not in self._of:
                    self._of[earlier] = self._of[now] + 1
                    open_.append(earlier)

    def plan(self, now: Situation) -> tuple[str, ...] | None:
        """Return a shortest list of calls to success; None at a dead end."""
        if now not in self._of:
            return None
        plan: list[str] = []
        while self._of[now]:
            call, now = min(
                (call, then)
                for call, then in self._after(now).items()
                if self._of.get(then) == self._of[now] - 1
            )
            plan.append(call)
        return tuple(plan)

    def _after(self, now: Situation) -> dict[str, Situation]:
        after: dict[str, Situation] = {}
        for tool, arguments in self._service.calls(now):
            answer = self._service.call(now, tool, arguments)
            assert answer is not None, "calls that are listed can be made"
            after[action_of(tool, arguments)] = answer[0]
        return after


def action_of(tool: str, arguments: dict[str, str]) -> str:
    """Return a call as an action."""
    return f"{tool}({json.dumps(arguments, sort_keys=True)})"


@lru_cache(64)
def distances_of(spec: str) -> Distances:
    """Return the distances of a task, which are searched once."""
    return Distances(service_named(spec))
