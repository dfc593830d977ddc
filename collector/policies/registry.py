"""The table of all policies that can be named on the command line."""

from collections.abc import Callable

from graphcredit.collector.options import LanguageOptions
from graphcredit.collector.policies.base import Policy
from graphcredit.collector.policies.engines.base import Sampling
from graphcredit.collector.policies.engines.http import checked_url
from graphcredit.collector.policies.engines.registry import (
    ENGINES,
    require_engine,
    require_temperature,
)
from graphcredit.collector.policies.language.policy import LanguagePolicy
from graphcredit.collector.policies.language.prompts import Template, load_template
from graphcredit.collector.policies.model_files import find_model
from graphcredit.collector.policies.scripted import OraclePolicy, RandomPolicy
from graphcredit.collector.policies.tutor import TutorPolicy
from graphcredit.store.errors import OptionError

_DEFAULTS = LanguageOptions()
_DEFAULT_TEMPLATE = "textworld"
LOCAL_SERVER = "http://127.0.0.1:8000"
"""Where a vLLM server listens by default."""


def _random(argument: str, _: LanguageOptions) -> Policy:
    if argument:
        raise OptionError(f"the policy random takes no argument: got {argument!r}")
    return RandomPolicy()


def _oracle(argument: str, _: LanguageOptions) -> Policy:
    try:
        epsilon = float(argument)
    except ValueError:
        raise OptionError(
            f"the policy oracle is oracle:EPSILON with a number from 0 to 1, for example "
            f"oracle:0.3: got {argument!r}"
        ) from None
    return OraclePolicy(epsilon=epsilon)


def _sampled_by(kind: str) -> Callable[[str, LanguageOptions], Policy]:
    def policy(argument: str, options: LanguageOptions) -> Policy:
        require_engine(kind)
        require_temperature(kind, options.temperature)
        path, server = _at_server(argument) if ENGINES[kind].is_served else (argument, "")
        return LanguagePolicy(
            kind=kind,
            model=find_model(path),
            template=_template(options),
            sampling=Sampling(
                temperature=options.temperature, max_new_tokens=options.max_new_tokens
            ),
            dtype=options.dtype,
            server=server,
        )

    return policy


def _at_server(argument: str) -> tuple[str, str]:
    """Return the directory and the server of `PATH@URL`; the server is this machine's if unsaid."""
    path, _, url = argument.rpartition("@")
    return path or url, checked_url(url if path else LOCAL_SERVER)


def _tutor(argument: str, options: LanguageOptions) -> Policy:
    require_engine("hf")
    return TutorPolicy(model=find_model(argument), template=_template(options))


def _template(options: LanguageOptions) -> Template:
    return load_template(options.template or _DEFAULT_TEMPLATE)


POLICIES: dict[str, Callable[[str, LanguageOptions], Policy]] = {
    "random": _random,
    "oracle": _oracle,
    "hf": _sampled_by("hf"),
    "vllm": _sampled_by("vllm"),
    "vllm-server": _sampled_by("vllm-server"),
    "tutor": _tutor,
}
"""Name to a function that makes the policy, from the text after the colon and the options."""


def parse_policy(text: str, options: LanguageOptions = _DEFAULTS) -> Policy:
    """Return the policy of a name and its argument, for example `oracle:0.3` or `hf:PATH`.

    Raises:
        OptionError: There is no such policy, or its argument or an option is out of range.
        MissingDependencyError: The library of its engine is not installed.
    """
    name, _, argument = text.partition(":")
    if name not in POLICIES:
        raise OptionError(
            "policies are random, oracle:EPSILON, hf:PATH, vllm:PATH, vllm-server:PATH@SERVER and "
            f"tutor:PATH: got {text!r}"
        )
    return POLICIES[name](argument, options)
