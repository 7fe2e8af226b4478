"""Turns from chat templates: those of the main families, what is refused, and that a template can do no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_models.families import chat

from omnitide_cli.catalog.turns import NoTurns, Turns, turns_of

CHATML = Turns(
    system_prefix="<|im_start|>system\n",
    system_suffix="<|im_end|>\n<|im_start|>user\n",
    question_suffix="<|im_end|>\n<|im_start|>assistant\n",
    response_suffix="<|im_end|>\n<|im_start|>user\n",
)
KNOWN = {
    "chatml": (chat.CHATML, CHATML),
    "thinking": (
        chat.THINKING_CHATML,
        Turns(
            CHATML.system_prefix,
            CHATML.system_suffix,
            CHATML.question_suffix + "<think>\n\n</think>\n\n",
            CHATML.response_suffix,
        ),
    ),
    "mistral": (chat.MISTRAL, Turns("<s>[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT][INST]", "[/INST]", "</s>[INST]")),
    "gemma": (
        chat.GEMMA,
        Turns(
            "<s><start_of_turn>user\n",
            "\n\n",
            "<end_of_turn>\n<start_of_turn>model\n",
            "<end_of_turn>\n<start_of_turn>user\n",
        ),
    ),
    "gemma 4": (
        chat.GEMMA_4,
        Turns("<s><|turn>system\n", "<turn|>\n<|turn>user\n", "<turn|>\n<|turn>model\n", "<turn|>\n<|turn>user\n"),
    ),
    "parts": (
        chat.SMOL,
        Turns(
            "<|im_start|>System: ",
            "<end_of_utterance>\nUser: ",
            "<end_of_utterance>\nAssistant:",
            "<end_of_utterance>\nUser: ",
        ),
    ),
    "glm": (
        chat.GLM,
        Turns("[gMASK]<sop><|system|>\n", "<|user|>\n", "<|assistant|>\n<think></think>\n", "<|user|>\n"),
    ),
    "llama 3": (
        chat.LLAMA_3,
        Turns(
            "<s><|start_header_id|>system<|end_header_id|>\n\n",
            "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
            "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
            "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
        ),
    ),
    "no system role": (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "{{ '[' + m.role + ']' + m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
        Turns("[user]", "\n\n", "[assistant]", "[user]"),
    ),
    "training marks": (
        "{% for m in messages %}{{ '#' + m.role + '#' }}{% if m.role == 'assistant' %}{% generation %}"
        "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}#assistant#{% endif %}",
        Turns("#system#", "#user#", "#assistant#", "#user#"),
    ),
}
REFUSED = {
    "{{ broken": "it can't be read",
    "": "loses or repeats",
    "{{ messages[-1].content }}": "loses or repeats",
    "{% for m in messages | reverse %}{{ m.content }}{% endfor %}": "changes the order",
    "{{ raise_exception('only tools') }}": "only tools",
    "{{ functions | join }}{{ functions.x.y }}": "undefined",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}": "unsafe",
}


@pytest.mark.parametrize("name", KNOWN)
def test_turns_are_found(name: str) -> None:
    template, turns = KNOWN[name]
    assert turns_of(template, bos="<s>", eos="</s>") == turns


@pytest.mark.parametrize("template", REFUSED)
def test_what_gives_no_turns_is_refused_with_the_reason(template: str) -> None:
    with pytest.raises(NoTurns, match=REFUSED[template]):
        turns_of(template)


def shipped_templates() -> list[Path]:
    """Those in the source of llama.cpp, where a build of llama-cpp-python has left it."""
    folders = (Path.home() / ".cache" / "uv", Path("/tmp/llama-src"))
    found = {path.name: path for folder in folders for path in folder.rglob("llama.cpp/models/templates/*.jinja")}
    return [found[name] for name in sorted(found)]


@pytest.mark.long
def test_llama_cpps_own_templates_give_turns() -> None:
    templates = shipped_templates()
    if not templates:
        pytest.skip("the source of llama-cpp-python is not on this machine")
    refused = {}
    for path in templates:
        try:
            turns = turns_of(path.read_text(encoding="utf-8"), bos="<s>", eos="</s>")
        except NoTurns as error:
            refused[path.stem] = str(error)
            continue
        assert turns.question_suffix
        assert turns.response_suffix
    assert len(templates) >= 70
    assert list(refused) == ["fireworks-ai-llama-3-firefunction-v2"]  # it can't do without a list of functions
    assert "functions" in refused["fireworks-ai-llama-3-firefunction-v2"]
