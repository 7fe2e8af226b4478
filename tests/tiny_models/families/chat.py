"""Chat templates in the style of today's families, and the control tokens that they use."""

CHATML_NAMES = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")

CHATML = """{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.content is string -%}{{- message.content -}}
{%- else -%}{%- for part in message.content -%}{{- part.text -}}{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""

THINKING_CHATML = (
    CHATML
    + """{%- if add_generation_prompt and enable_thinking is defined and enable_thinking is false -%}
{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}"""
)
"""As Qwen3's: without thinking an answer begins with an empty thought."""

MISTRAL = """{{- bos_token -}}
{%- if messages[0].role == 'system' -%}
{{- '[SYSTEM_PROMPT]' + messages[0].content + '[/SYSTEM_PROMPT]' -}}{%- set messages = messages[1:] -%}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}{{- '[INST]' + message.content + '[/INST]' -}}
{%- elif message.role == 'assistant' -%}{{- message.content + eos_token -}}
{%- else -%}{{- raise_exception('Only user, system and assistant roles are supported') -}}
{%- endif -%}
{%- endfor -%}"""

GEMMA = """{{- bos_token -}}
{%- if messages[0].role == 'system' -%}
{%- set first = messages[0].content + '\\n\\n' -%}{%- set messages = messages[1:] -%}
{%- else -%}{%- set first = '' -%}{%- endif -%}
{%- for message in messages -%}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}{%- endif -%}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' -}}
{{- first if loop.first else '' -}}{{- message.content | trim -}}{{- '<end_of_turn>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}"""

GEMMA_4 = """{{- bos_token -}}
{%- for message in messages -%}
{{- '<|turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' -}}
{{- message.content | trim -}}{{- '<turn|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|turn>model\\n' -}}{%- endif -%}"""

SMOL = """<|im_start|>{% for message in messages %}{{ message.role | capitalize }}:
{%- for part in message.content %}{{ ' ' + part.text }}{% endfor %}<end_of_utterance>
{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"""
"""Its content is a list of parts, never a text."""

GLM = """[gMASK]<sop>{%- for message in messages -%}
{{- '<|' + message.role + '|>\\n' + message.content -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}
{%- if enable_thinking is defined and not enable_thinking -%}{{- '<think></think>\\n' -}}{%- endif -%}{%- endif -%}"""

LLAMA_3 = """{{- bos_token -}}{%- for message in messages -%}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}{%- endif -%}"""
