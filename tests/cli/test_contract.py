"""The engine that plays a part has the shape of the real one."""

from __future__ import annotations

import inspect

import pytest
from scripted import ScriptedEngine


@pytest.mark.parametrize("name", ["open", "start", "ingest", "ask", "interrupt", "summary", "kv_state", "close"])
def test_the_scripted_engine_is_called_like_the_real_one(name: str) -> None:
    from omnitide_cli.runtime.engine import Engine

    real, scripted = (inspect.signature(getattr(kind, name)).parameters for kind in (Engine, ScriptedEngine))
    assert [(each.name, each.kind) for each in real.values()] == [(each.name, each.kind) for each in scripted.values()]
