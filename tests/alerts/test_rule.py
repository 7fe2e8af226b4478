"""Rules as people write them, and what is said of those that can't be."""

from __future__ import annotations

import tomllib

import pytest

from omnitide_cli.alerts.command import filled, variables
from omnitide_cli.alerts.rule import MOST_RULES, Rule, checked, parse_rule, rules_of, with_command
from omnitide_cli.errors import UsageError


@pytest.mark.parametrize(
    ("text", "name", "question"),
    [
        ("Is it there?", "Is it there?", "Is it there?"),
        ("door=Is somebody there?", "door", "Is somebody there?"),
        (" door = Is it? ", "door", "Is it?"),
        ("Is 1+1=2 on it?", "Is 1+1=2 on it?", "Is 1+1=2 on it?"),
        ("sum=Is 1+1=2 on it?", "sum", "Is 1+1=2 on it?"),
        ("Tür=Ist da wer?", "Tür", "Ist da wer?"),
        ("line\nbreak", "line break", "line\nbreak"),
    ],
)
def test_a_rule_has_a_name_or_is_its_own(text: str, name: str, question: str) -> None:
    rule = parse_rule(text)
    assert (rule.name, rule.question) == (name, question)


@pytest.mark.parametrize("text", ["", "  ", "door=", "door=  "])
def test_an_empty_question_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="question is empty"):
        parse_rule(text)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0}, "between 0 and 1"),
        ({"threshold": 1.0}, "between 0 and 1"),
        ({"threshold": float("nan")}, "not a number"),
        ({"threshold": "0.5"}, "not a number"),
        ({"threshold": True}, "not a number"),
        ({"hold": 0}, "whole number"),
        ({"hold": 1.5}, "whole number"),
        ({"hold": True}, "whole number"),
        ({"every": 0}, "between 0.1"),
        ({"every": 1e9}, "between 0.1"),
        ({"cooldown": -1}, "between 0 "),
        ({"command": 3}, "not a text"),
        ({"command": "no-such-program-anywhere"}, "there is no program"),
        ({"command": "echo 'unclosed"}, "No closing quotation"),
        ({"command": "echo {txt}"}, "there is no {txt}"),
        ({"command": "{text} x"}, "can't come from an alert"),
        ({"describe": 1}, "not a text"),
        ({"also": 1}, "not a text"),
        ({"senses": "smell"}, "senses 'smell'"),
    ],
)
def test_settings_that_can_not_be_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Rule("Is it there?", "it", **settings)  # type: ignore[arg-type]
    assert "it" in caught.value.message
    assert caught.value.hint


def test_a_file_has_a_table_a_rule_and_what_holds_for_all() -> None:
    text = """
        every = "0:05"
        threshold = 0.7
        [fox]
        question = "Is there a fox?"
        [door]
        question = "Is somebody there?"
        threshold = 0.9
        hold = 2
        command = "echo {text}"
    """
    fox, door = rules_of(tomllib.loads(text), "alerts.toml", every=1.0, cooldown=9.0)
    assert (fox.name, fox.every, fox.threshold, fox.cooldown, fox.command) == ("fox", 5.0, 0.7, 9.0, None)
    assert (door.name, door.threshold, door.hold, door.command) == ("door", 0.9, 2, "echo {text}")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "no rule", "door"),
        ("every = 1", "no rule", "door"),
        ("[fox]", "no question", "question"),
        ("[fox]\nquestion = 'Is it?'\ntreshold = 0.5", "no setting 'treshold'", "threshold"),
        ("question = 'Is it?'\n[fox]\n", "no setting 'question'", "question"),
        ("[fox]\nquestion = 'Is it?'\nhold = 'two'", "hold 'two'", "first yes"),
        ("[fox]\nquestion = 'Is it?'\nevery = 'soon'", "every = 'soon'", "seconds"),
        ("[fox]\nquestion = 3", "question is not a text", "quotes"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        rules_of(tomllib.loads(text), "alerts.toml")
    assert caught.value.message.startswith("alerts.toml: ")
    assert hint in caught.value.hint


def test_two_rules_of_one_name_and_very_many_are_refused() -> None:
    with pytest.raises(UsageError, match="two alert rules"):
        checked([Rule("Is it?", "it"), Rule("Was it?", "it")])
    with pytest.raises(UsageError, match="too many"):
        checked([Rule("Is it?", f"{number}") for number in range(MOST_RULES + 1)])


def test_a_command_of_its_own_goes_before_that_of_all() -> None:
    assert with_command(Rule("Is it?", command="true"), "echo").command == "true"
    assert with_command(Rule("Is it?"), "echo").command == "echo"
    assert with_command(Rule("Is it?", command=""), "echo").command == ""
    assert with_command(Rule("Is it?"), None).command is None


def test_texts_go_into_arguments_as_they_are() -> None:
    values = {"text": "a 'b' \"c\" $(d)\n{rule}\0", "rule": "fox; rm -rf"}
    found = filled("notify-send --title={rule} '{text}' {at} {unknown}", values)
    assert found == ["notify-send", "--title=fox; rm -rf", "a 'b' \"c\" $(d)\n{rule}", "", "{unknown}"]
    assert variables(values)["OMNITIDE_ALERT_TEXT"] == "a 'b' \"c\" $(d)\n{rule}"
