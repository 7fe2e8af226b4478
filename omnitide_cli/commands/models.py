"""`omnitide models`: which models there are, which of them are here; fetch and remove them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnitide_cli.commands.lazy import TracedCommand
from omnitide_cli.commands.options import complete_models
from omnitide_cli.errors import UsageError

if TYPE_CHECKING:
    from omnitide_cli.catalog.files import FileState
    from omnitide_cli.catalog.manifest import Manifest

EPILOG = """
[bold]Examples[/bold]

omnitide models list

omnitide models pull qwen2.5-omni-3b

omnitide models info my.gguf --mmproj my-mmproj.gguf

An interrupted pull resumes. Downloads are kept in Hugging Face's cache
(HF_HOME), where other tools find them too. HF_HUB_OFFLINE=1 disables network
access. Your own files need no manifest:

omnitide watch clip.mp4 --model my.gguf --mmproj my-mmproj.gguf
"""

INFO_EPILOG = """
[bold]Examples[/bold]

omnitide models info qwen2.5-omni-3b --json

omnitide models info my.gguf --mmproj my-mmproj.gguf > my.toml
"""

app = typer.Typer(no_args_is_help=True, epilog=EPILOG, rich_markup_mode="rich")

Name = Annotated[
    str,
    typer.Argument(
        help="A known model, or the path of a manifest or a .gguf file.",
        metavar="NAME",
        show_default=False,
        autocompletion=complete_models,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per model.")]


@app.command("list", cls=TracedCommand)
def list_models(json_lines: Json = False) -> None:
    """List the known models and whether they are on this machine."""
    from omnitide_cli.catalog.manifest import load_manifest, model_names
    from omnitide_cli.commands.models_view import list_lines

    rows = [_described(load_manifest(name)) for name in model_names()]
    if json_lines:
        for row in rows:
            print(json.dumps(row))
        return
    list_lines(rows, sys.stdout)


@app.command(cls=TracedCommand, epilog=INFO_EPILOG)
def info(
    model: Name,
    mmproj: Annotated[
        str | None,
        typer.Option("--mmproj", help="The encoders of a .gguf file.", metavar="PATH", show_default=False),
    ] = None,
    json_object: Json = False,
) -> None:
    """Show what a model is, what it needs, and where its files are.

    Of a .gguf file: what was found in it, as a manifest to edit.
    """
    from omnitide_cli.catalog.files import find_manifest
    from omnitide_cli.commands.models_view import info_lines

    if mmproj and not model.endswith(".gguf"):
        raise UsageError(f"--mmproj: {model} has its own encoders", "leave out --mmproj")
    manifest = find_manifest(model, mmproj)
    if json_object:
        print(json.dumps(_described(manifest)))
    elif model.endswith(".gguf"):
        from omnitide_cli.catalog.manifest_text import manifest_lines

        print("\n".join(manifest_lines(manifest)))
    else:
        info_lines(_described(manifest), sys.stdout)


@app.command(cls=TracedCommand, epilog="omnitide models pull qwen2.5-omni-3b")
def pull(
    model: Name,
    check: Annotated[
        bool, typer.Option("--check", help="Also verify the checksums of files that are already here.")
    ] = False,
) -> None:
    """Download a model, or the rest of it."""
    from omnitide_cli.catalog.files import check_files, fetch_files, find_manifest

    def say(message: str) -> None:
        print(message, file=sys.stderr, flush=True)

    manifest = find_manifest(model)
    if check:
        check_files(manifest, say)
    files = fetch_files(manifest, notify=say)
    for path in (files.model, files.mmproj):
        if path:
            print(path)


@app.command(cls=TracedCommand, epilog="omnitide models remove qwen2.5-omni-3b --yes")
def remove(
    model: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False
) -> None:
    """Delete a downloaded model from Hugging Face's cache."""
    from omnitide_cli.catalog.files import file_states, find_manifest, remove_files, unfinished_bytes
    from omnitide_cli.formats.words import size

    manifest = find_manifest(model)
    here = sum(state.size for state in file_states(manifest) if state.path) + unfinished_bytes(manifest)
    if not here:
        print(f"{manifest.name} is not on this machine")
        return
    if not yes and _is_downloaded(manifest):
        if not sys.stdin.isatty():
            raise UsageError(f"{manifest.name} would be deleted ({size(here)})", "add --yes to confirm")
        typer.confirm(f"Delete {manifest.name} ({size(here)}) from the cache? Other tools may use it too.", abort=True)
    print(f"{size(remove_files(manifest))} freed")


def _is_downloaded(manifest: Manifest) -> bool:
    return bool(manifest.model.repo)


def _described(manifest: Manifest) -> dict[str, Any]:
    """A model as one flat object."""
    from omnitide_cli.catalog.files import file_states, unfinished_bytes
    from omnitide_cli.catalog.manifest import DEFAULT_MODEL

    states = file_states(manifest)
    shape, frames = manifest.shape, manifest.frames
    return {
        "name": manifest.name,
        "title": manifest.title,
        "description": manifest.description,
        "license": manifest.license,
        "default": manifest.name == DEFAULT_MODEL,
        "state": _state(manifest, states, unfinished_bytes(manifest)),
        "bytes": sum(state.size for state in states),
        "unfinished_bytes": unfinished_bytes(manifest),
        "files": [
            {
                "role": state.role,
                "name": state.name,
                "path": str(state.path) if state.path else None,
                "bytes": state.size,
            }
            for state in states
        ],
        "image_tokens": frames.capped(None).max_tokens,
        "most_image_tokens": frames.max_tokens,
        "sees": manifest.sees,
        "hears": manifest.hears,
        "audio_tokens_per_second": manifest.audio.tokens_per_second,
        "cache_bytes_per_token": 2 * 2 * shape.layers * shape.kv_heads * shape.head_dim,
        "default_question": manifest.default_question,
    }


def _state(manifest: Manifest, states: list[FileState], unfinished: int) -> str:
    """ "shipped", "here", "in part" or "not here"."""
    here = [state.path is not None for state in states]
    if all(here):
        return "here" if _is_downloaded(manifest) else "shipped" if manifest.model.path[:1] != "/" else "here"
    return "in part" if any(here) or unfinished else "not here"
