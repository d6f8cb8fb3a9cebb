"""Messages keep the names of options and objects, so that the command line spells them."""

import ast
import json
import pickle
import re
from pathlib import Path

import pytest

from leakbound import ApproxDP, KLScan, errors
from leakbound._base.messages import Message, Option, Ways
from leakbound.cli import output

PACKAGE = Path(errors.__file__).parent
# Sentences that no command shows: about events and DP-SGD in Python, and of methods.
ELSEWHERE = {
    "audits/dp_sgd/audit.py",
    "audits/model.py",
    "claims/events.py",
    "panoramia/options.py",
    "planning/protocol.py",
    "results/terms.py",
    "stats/distribution_shift.py",
}


def test_a_message_is_the_sentence_that_python_says() -> None:
    cuts = Option("cuts", KLScan)
    message = Message(
        "{cuts} takes {share:.1f} of {of}: use {Fixed(…)}", cuts=cuts, share=0.25, of=3
    )
    assert message == "cuts=KLScan takes 0.2 of 3: use Fixed(…)"
    assert json.loads(json.dumps([message])) == [str(message)]
    assert type(str(message)) is str


def test_names_are_spelled_wherever_they_are_in_a_message() -> None:
    inner = Message("pass {ids=}")
    error = errors.OptionError(inner)
    outer = Message("{first}; {second}; {braces}", first=inner, second=error, braces="{ids=}")
    assert outer.spelled(lambda part: f"<{part}>") == "pass <ids=>; pass <ids=>; {ids=}"
    joined = Message.joined(["a {text}", inner])
    assert joined == "a {text}; pass ids="
    assert joined.spelled(lambda part: f"<{part}>") == "a {text}; pass <ids=>"


def test_a_message_is_pickled_with_its_parts() -> None:
    message = Message("{cuts}: use {Fixed}", cuts=Option("cuts", 3))
    again = pickle.loads(pickle.dumps(errors.OptionError(message))).args[0]
    assert again == message
    assert again.spelled(lambda part: f"<{part}>") == "<cuts=3>: use <Fixed>"


SPELLED = {
    Message("{cuts=Fixed(guesses=7)}"): "--cuts fixed:7",
    Message("{cuts=Weighted()}"): "--cuts weighted",
    Message("{cuts}", cuts=Option("cuts", KLScan())): "--cuts kl",
    Message("{cuts=} or {sides='both'}"): "--cuts or --sides both",
    Message("{real_nonmembers=True}"): "--real-nonmembers",
    Message("{real_nonmembers}"): "--real-nonmembers",
    Message("{variant='raw'}"): "variant='raw'",
    Message("{ids=}"): "the column id",
    Message("{claim=ApproxDP(delta=…)}"): "--claim eps=E,delta=…",
    Message("{claim}", claim=Option("claim", ApproxDP(delta=0.5))): "--claim eps=E,delta=0.5",
    Message("{delta}", delta=Option("delta", 0.1)): "--claim eps=E,delta=0.1",
    Message("{RandomSplit(member)}, {PureDP()}"): "leakbound split, pure DP",
    Message("{missing}", missing=Option("missing", ["< 5", "?"])): "--missing '< 5,?'",
    Message("{columns}", columns=Option("columns", {"pay": "codes"})): "--categorical pay",
    Message("{way}", way=Ways("make it", shell="name it in --x")): "name it in --x",
    "cuts=KLScan, as somebody's own error says it": "cuts=KLScan, as somebody's own error says it",
}


@pytest.mark.parametrize("message", SPELLED)
def test_the_command_line_spells_options_and_objects(message: str) -> None:
    token = output.OPTIONS.set(("claim", "cuts", "real_nonmembers", "sides"))
    try:
        assert output.spelled(message) == SPELLED[message]
        assert output.worded(errors.OptionError(message)) == SPELLED[message]
    finally:
        output.OPTIONS.reset(token)


def test_the_command_line_searches_no_sentence_for_names() -> None:
    tree = ast.parse((PACKAGE / "cli" / "output.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert imports
    assert "re" not in {one.name for node in imports for one in node.names}


def test_sentences_mark_the_objects_that_they_name() -> None:
    """What a command may show has policies, claims and designs in braces, as parts.

    Calls such as lb.Coins(member) are hints for Python alone.
    """
    names = re.compile(rf"(?<![.\w])(?:{'|'.join(output._WORDS_OF_OBJECTS)})\b")
    unmarked = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name in ELSEWHERE or name.startswith("cli/"):
            continue
        for text in _sentences(ast.parse(path.read_text(encoding="utf-8"))):
            outside = re.sub(r"\{[^{}]*\}", "", text)
            unmarked += [f"{name}: {word} in {text}" for word in names.findall(outside)]
    assert not unmarked


def _sentences(tree: ast.AST) -> list[str]:
    """Return texts of several words that are no docstrings."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    ]
    return [text for text in texts if " " in text]
