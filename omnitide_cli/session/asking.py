"""Questions to a saved session: it is put into the cache as it was, and asked without its source. The file stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnitide_cli.addresses import display_name
from omnitide_cli.catalog.files import find_manifest
from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.errors import SessionFileError, UsageError
from omnitide_cli.formats.sink import Sink, Tee
from omnitide_cli.runtime.options import POLICIES
from omnitide_cli.runtime.saved import SavedOptions
from omnitide_cli.session.configuration import engine_options, with_recall
from omnitide_cli.session.evidence import Evidence
from omnitide_cli.session.global_options import GlobalOptions
from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.session.keeping import Journalist
from omnitide_cli.session.loading import load_engine, model_files
from omnitide_cli.session.outputs import OutputOptions, Outputs, open_outputs
from omnitide_cli.session.resume import Resumption, saved_model

if TYPE_CHECKING:
    from omnitide_cli.runtime.engine import Engine
    from omnitide_cli.runtime.events import Event


Alters = Callable[[Manifest, Resumption], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AskOptions:
    """With what a saved session is asked. `engine`: fields of EngineOptions, None where no one has set them."""

    model: str | None = None
    mmproj: str | None = None
    own_mmproj: str | None = None
    """The encoders of a model that is a file of the user's own."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    output: OutputOptions = field(default_factory=OutputOptions)
    evidence: Path | None = None


@dataclass(frozen=True, slots=True)
class Reopened:
    """A saved session in the cache. `begun`: the events of its start."""

    engine: Engine
    resumption: Resumption
    begun: Iterator[Event]

    @property
    def clock(self) -> float:
        """Media seconds that it had come to."""
        return self.resumption.saved.media.clock


def ask_saved(path: Path, questions: Sequence[str], options: AskOptions, state: GlobalOptions) -> bool:
    """Ask a saved session, one question after the other, and show the answers; False: a signal ended it.

    Raises OmniTideError for everything that is wrong with file, model or flags.
    """
    questions = [each.strip() for each in questions]
    if not questions or not all(questions):
        raise UsageError("a question is empty", 'ask something: omnitide ask talk.tide "What was it about?"')
    with asked(options.output, state, path.name) as (interrupt, outputs):
        evidence = Evidence.into(options.evidence)
        with reopened(path, options, interrupt, outputs) as session:
            journal = session.resumption.journal
            shown: list[Sink] = [Journalist(journal), outputs.sink]
            if evidence is not None:
                shown.insert(1, evidence.sink(journal, outputs.sink.emit, session.resumption.saved.media))
            sink = Tee(shown)
            interrupt.on_request(session.engine.interrupt)
            try:
                for event in session.begun:
                    sink.emit(event)
                for question in questions:
                    if interrupt.requested:
                        break
                    sink.asking(question, session.clock)
                    for event in session.engine.ask(question, at=session.clock):
                        sink.emit(event)
            finally:
                interrupt.on_request(None)
                for each in shown[:-1]:
                    each.close()
            if options.output.json_lines:
                sink.emit(session.engine.summary())
        return not interrupt.requested


@contextmanager
def asked(output: OutputOptions, state: GlobalOptions, title: str) -> Iterator[tuple[Interrupt, Outputs]]:
    """Signals and outputs of a command that asks and shows; what goes wrong inside is told there, too."""
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        plain = replace(output, dashboard=False, no_ask=True)
        outputs = open_outputs(state, plain, title, interrupt)
        stack.callback(outputs.close)
        try:
            yield interrupt, outputs
        except Exception as error:
            if interrupt.requested:
                raise KeyboardInterrupt from error
            outputs.sink.failed(error)
            raise


@contextmanager
def reopened(
    path: Path, options: AskOptions, interrupt: Interrupt, outputs: Outputs, alters: Alters | None = None
) -> Iterator[Reopened]:
    """A saved session with its model, as it was when it was saved, but for the settings that `alters` gives.

    Raises OmniTideError.
    """
    resumption = Resumption(path, resumes=False)
    saved = resumption.saved
    name = options.model or saved.model.name
    manifest = find_manifest(name)
    wanted = dict.fromkeys(SavedOptions.__dataclass_fields__) | dict(options.engine)
    if wanted["policy"] is None and saved.options.policy not in POLICIES:
        wanted["policy"] = "omnipick"  # a file may not run code, and to ask nothing has to be cut
    merged = resumption.options(wanted)
    if alters is not None:
        merged |= alters(manifest, resumption)
    chosen = with_recall(
        manifest,
        engine_options(manifest, merged, unit_seconds=saved.media.unit_seconds, image_tokens=saved.media.image_tokens),
    )
    own = options.own_mmproj if Path(name).suffix == ".gguf" else None
    files = model_files(manifest, options.mmproj or own, interrupt, outputs)
    prompt = replace(manifest.prompt, system_text=saved.model.system_text)
    resumption.check_model(saved_model(name, files, saved.model.system_text))
    with load_engine(manifest, files, prompt, chosen, interrupt, outputs) as engine:
        try:
            begun = iter(engine.start(display_name(saved.media.source), resumption.file))
        except SessionFileError as error:
            raise resumption.refused(error) from error
        yield Reopened(engine, resumption, begun)
