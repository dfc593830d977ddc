"""Write the prompts of a language model, by templates in TOML files.

The templates of this package are in `templates/`; a user's own template is named by its path.
`user`, `history` and `action` have placeholders in braces, and a literal brace is doubled. `system`
and `no_history` are shown as they are.
"""

import json
from hashlib import blake2b
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar, Literal

from graphcredit.collector.environments.base import Observation
from graphcredit.collector.policies.base import PolicyView
from graphcredit.store.errors import OptionError
from graphcredit.store.files.parse import parse_toml
from graphcredit.store.options import Count, Options

_PACKAGED = Path(__file__).parent / "templates"
_PLACEHOLDERS = {
    "user": frozenset({"task", "history", "observation", "state", "actions"}),
    "history": frozenset({"observation", "state", "action"}),
    "action": frozenset({"action"}),
}


class Template(Options):
    """A prompt template."""

    owner: ClassVar[str] = "template"

    name: str
    """Name of the file, without its suffix."""
    user: str
    """The user message, with {task}, {history}, {observation}, {state}, {actions}."""
    answer: Literal["tags", "plain"]
    """"tags": <think>…</think><action>…</action>; "plain": the whole answer is the action."""
    system: str | None = None
    history: str = "{action}"
    """An earlier step, with {observation}, {state}, {action}; steps are joined by line breaks."""
    history_length: Count = 0
    """Number of earlier steps to show, the latest ones."""
    no_history: str = ""
    """Value of {history} if no earlier step is shown."""
    action: str = "{action}"
    """An admissible action, with {action}; actions are joined by line breaks."""

    @property
    def fingerprint(self) -> str:
        """Its name and a digest of its content."""
        text = json.dumps(dict(self), sort_keys=True)
        return f"{self.name}-{blake2b(text.encode(), digest_size=4).hexdigest()}"


def template_names() -> list[str]:
    """Return the names of the package's own templates."""
    return sorted(path.stem for path in _PACKAGED.glob("*.toml"))


def load_template(name: str | Path) -> Template:
    """Return a template of the package by its name, or a user's own by its path.

    Raises:
        OptionError: There is no such template, or it breaks a rule.
    """
    path = _PACKAGED / f"{name}.toml" if str(name) in template_names() else Path(name)
    try:
        found = parse_toml(path.read_text(encoding="utf-8"))
    except OSError:
        raise OptionError(
            f"a template must be one of {', '.join(template_names())} or the path of a TOML file: "
            f"got {str(name)!r}"
        ) from None
    except ValueError as error:
        raise OptionError(f"a template must be TOML: {path}: {error}") from None
    return _checked(path, found)


def render(template: Template, view: PolicyView) -> list[dict[str, str]]:
    """Return the messages of a prompt, each with a role and a content."""
    now = view.observation
    last = view.history[-template.history_length :] if template.history_length else ()
    earlier = [template.history.format(**_seen(then), action=action) for then, action in last]
    actions = [template.action.format(action=action) for action in now.admissible_actions or ()]
    user = template.user.format(
        **_seen(now),
        task=now.task or "",
        history="\n".join(earlier) or template.no_history,
        actions="\n".join(actions),
    )
    system = [{"role": "system", "content": template.system}] if template.system else []
    return [*system, {"role": "user", "content": user}]


def _seen(observation: Observation) -> dict[str, str]:
    return {"observation": observation.text or observation.state, "state": observation.state}


def _checked(path: Path, found: dict[str, Any]) -> Template:
    try:
        template = Template(name=path.stem, **found)
    except OptionError as error:
        raise OptionError(f"{path} is no template: {error}") from None
    for key, allowed in _PLACEHOLDERS.items():
        _check_placeholders(path, key, getattr(template, key), allowed)
    return template


def _check_placeholders(path: Path, key: str, text: str, allowed: frozenset[str]) -> None:
    wanted = ", ".join(f"{{{name}}}" for name in sorted(allowed))
    try:
        used = {
            f"{name}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}"
            for _, name, form, conversion in Formatter().parse(text)
            if name is not None
        }
    except ValueError as error:
        raise OptionError(f"{key} of {path}: {error}; write a literal brace twice") from None
    if not used <= allowed:
        raise OptionError(
            f"{key} of a template may have {wanted}: {path} has "
            f"{', '.join(f'{{{name}}}' for name in sorted(used - allowed))}; write a literal brace "
            "twice"
        )
