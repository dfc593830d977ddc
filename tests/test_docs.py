"""The documents name what the code has."""

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

from graphcredit.cli.table import COMMANDS, load
from graphcredit.credit.estimators.table import ESTIMATORS
from graphcredit.store import schema
from graphcredit.store.options import described
from graphcredit.store.sql.views import BASE_VIEWS
from graphcredit.trainer.config import TrainConfig
from graphcredit.trainer.loss.registry import OBJECTIVES
from graphcredit.trainer.options import CorrectionMode
from tests.test_layers import MAY_IMPORT
from tools.reference_pages import columns_page, fields_page

ROOT = Path(__file__).parent.parent
_COMMAND_LINE = re.compile(
    r"^(?:    |\$ )?graphcredit ([a-z-]+)(.*)$|`graphcredit ([a-z-]+)([^`]*)`", re.M
)
"""A line of a code block, or code within a line."""


def test_the_store_document_describes_every_folder_and_the_reference_every_column():
    text = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    folders = {view.pattern.partition("/")[0] for view in BASE_VIEWS} - {"credit", "graph"}
    assert {name for name in folders if f"\n## {name}\n" not in text} == set()
    told = columns_page()
    declared = [value for name, value in vars(schema).items() if name.endswith("_COLUMNS")]
    columns = [column for table in declared for column in table]
    assert len(columns) > 100
    missing = [c.name for c in columns if f"| `{c.name}` | {c.type} |" not in told]
    assert set(missing) == {c.name for c in schema.PARTITION_COLUMNS} - {"run_id", "iteration"}


def test_the_page_of_fields_is_that_of_the_code():
    text = (ROOT / "docs" / "fields.md").read_text(encoding="utf-8")
    assert text == fields_page(), "python -m tools.reference_pages writes it"


def test_documents_are_short():
    """But research; one that is made from the code may be long."""
    words = {
        page.name: len(page.read_text(encoding="utf-8").split())
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
        if page.parent.name != "research"
    }
    assert words["README.md"] <= 600
    assert max(count for name, count in words.items() if name != "fields.md") <= 2000
    assert sum(words.values()) <= 25_000


def test_the_commands_document_names_every_command_and_estimator():
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert {name for name in COMMANDS if f"graphcredit {name}" not in text} == set()
    told = {
        row.name: re.search(rf"^\| `{row.name}` \| .* \| {row.matter} \|", text, re.M)
        for row in ESTIMATORS
    }
    assert [name for name, row in told.items() if row is None] == []


def test_the_glossary_has_the_words_that_are_printed():
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8").partition("## Glossary")[2]
    evidence = (ROOT / "cli" / "commands" / "evidence.py").read_text(encoding="utf-8")
    (header,) = re.findall(r"\{'':\{width\}\}  (.*)\"", evidence)
    columns = set(header.split()) - {"start", "middle", "end"}
    assert "company" in columns
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "cli").rglob("*.py"))
    terms = {"beyond chance", "rollout", "trajectory", "alone", "group", "truncated"}
    assert [term for term in terms if term not in source] == []
    assert [term for term in columns | terms if term not in text] == []


def test_a_try_of_a_task_is_called_a_rollout():
    """A trajectory is a name only: of columns, options, a view and a page of the viewer."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]
    texts = {p.name: p.read_text("utf-8") for p in pages if p.parent.name != "research"}
    texts |= {name: load(name).help or "" for name in COMMANDS}
    code = re.compile(r"```.*?```|^    .*?$|`[^`\n]*`|\]\([^)]*\)|src(set)?=\S+", re.S | re.M)
    said = {name: len(re.findall("trajector", code.sub("", t), re.I)) for name, t in texts.items()}
    glossary, names = {"README.md": 1, "concepts.md": 1}, {"fields.md": 1, "viewer.md": 2, "sql": 1}
    assert {name: number for name, number in said.items() if number} == glossary | names


def test_the_program_calls_it_a_rollout_too():
    """Names stand in SQL, behind `=`, or behind the name before them in a list."""
    names = r"`[^`\n]*`|(FROM|JOIN|VIEW) trajector\w+|trajector(ies\.|y=)\S|[:=,] ?trajector\w+"
    printed = {text: re.sub(names, "", text) for text in _printed()}
    assert len(printed) > 2000
    said = [
        text for text, left in printed.items() if re.search(r"\btrajector(y|ies)\b", left, re.I)
    ]
    assert said == ["episode without a trajectory"]  # of rLLM, whose episodes have several


def _printed() -> Iterator[str]:
    for path in (path for room in MAY_IMPORT for path in (ROOT / room).rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        own = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        calls = (node for node in nodes if isinstance(node, ast.Call))
        counts = {
            id(each) for call in calls if ast.unparse(call.func) == "counted" for each in call.args
        }
        for node in nodes:
            text = node.value if isinstance(node, ast.Constant) else None
            if (
                isinstance(text, str)
                and id(node) not in own
                and (" " in text or id(node) in counts)
            ):
                yield text
    yield from (option.help or "" for name in COMMANDS for option in load(name).params)
    for row in ESTIMATORS:
        yield row.options.__doc__ or ""
        yield from (option.text for option in described(row.options))


def test_every_command_has_help_with_an_example():
    assert [name for name in COMMANDS if f"graphcredit {name}" not in load(name).help] == []


def test_every_estimator_says_its_formula_and_its_source():
    for row in ESTIMATORS:
        text = row.options.__doc__ or ""
        assert re.search(r"^ +A += ", text, re.MULTILINE), row.name
        assert "Source:" in text, row.name


def test_the_training_document_names_every_objective_aggregation_and_correction():
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    hints = get_type_hints(TrainConfig)
    names = [row.name for row in OBJECTIVES]
    names += [*get_args(hints["aggregation"]), *get_args(hints["kl_estimator"])]
    names += get_args(CorrectionMode)
    assert [name for name in names if name not in text] == []
    flags = {flag.replace("-", "_") for flag in re.findall(r"--(?:no-)?([a-z][a-z-]+)", text)}
    own = {"set", "config", "dry_run", "json"}
    launchers = {"nproc_per_node", "nnodes", "node_rank", "master_addr", "master_port"}
    slurm = {"nodes", "ntasks_per_node", "gpus_per_node"}
    assert flags - hints.keys() - own - launchers - slurm == set()


def test_every_link_of_a_document_leads_to_a_file():
    broken = [
        (document.name, link)
        for document in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
        for link in re.findall(
            r"\]\(([^)#]+)[^)]*\)|(?:src|srcset)=\"([^\"]+)\"", document.read_text(encoding="utf-8")
        )
        for target in filter(None, link)
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert broken == []


def test_the_readme_of_the_package_has_absolute_links():
    text = runpy.run_path(str(ROOT / "setup.py"))["readme"]()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 10
    assert [link for link in links if not link.startswith("https://")] == []
    pictures = re.findall(r"!\[[^\]]*\]\([^)]*/raw/main/([^)]+)\)", text)
    assert [(ROOT / picture).is_file() for picture in pictures] == [True]


def test_every_command_in_a_document_has_the_options_that_it_is_given():
    flags = {
        name: {
            flag for option in load(name).params for flag in (*option.opts, *option.secondary_opts)
        }
        for name in COMMANDS
    }
    wrong = []
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = document.read_text(encoding="utf-8").replace("\\\n", " ")
        for in_block, more, in_line, others in _COMMAND_LINE.findall(text):
            command, rest = in_block or in_line, more or others
            words = re.sub(r"\"[^\"]*\"|'[^']*'| #.*| \|.*", "", rest)
            given = set(re.findall(r"(?<= )--?[a-z][a-z0-9-]*", words)) - {
                "--help",
                "--quiet",
                "-h",
            }
            wrong += [(document.name, command, flag) for flag in given - flags.get(command, set())]
    assert wrong == []
