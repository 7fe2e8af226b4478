"""One session from the command line's settings to its summary: the whole of `watch` and of `live`, but for the source.

The order is the one in which things fail cheapest: flags, the saved session, the source, the model's files, the model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from omnitide_cli.alerts.watcher import Watcher
from omnitide_cli.catalog.files import FOR_REAL_VIDEO, find_manifest
from omnitide_cli.catalog.folders import runtime_dir
from omnitide_cli.catalog.manifest import DEFAULT_MODEL, load_manifest
from omnitide_cli.errors import UsageError
from omnitide_cli.formats.sink import Sink, Tee
from omnitide_cli.runtime.events import Notice
from omnitide_cli.runtime.journal import Journal
from omnitide_cli.runtime.session_file import check_writable
from omnitide_cli.session import saves
from omnitide_cli.session.alerting import AlertCommands, AlertOptions
from omnitide_cli.session.checkpoint import Checkpointer
from omnitide_cli.session.configuration import engine_options, with_recall
from omnitide_cli.session.doorway import Doorway
from omnitide_cli.session.evidence import Evidence
from omnitide_cli.session.global_options import GlobalOptions
from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.session.keeping import Journalist
from omnitide_cli.session.loading import check_encoders, load_engine, model_files
from omnitide_cli.session.loop import SessionLoop
from omnitide_cli.session.outputs import OutputOptions, open_outputs
from omnitide_cli.session.resume import Resumption, identity, saved_model
from omnitide_cli.session.schedule import Schedule, Timed, parse_question, schedule_of
from omnitide_cli.session.sources import STANDARD_INPUT, SourceKind
from omnitide_cli.session.typed_lines import PipedLines, has_unread_pipe
from omnitide_cli.times import clock

UNREAD_INPUT = "no question will be asked: standard input isn't read; --questions - asks what comes from it"


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """What is asked, as the flags of the same names give it."""

    ask: list[str] | None = None
    ask_at: list[str] | None = None
    every: list[str] | None = None
    questions: Path | None = None
    no_ask: bool = False
    manual: bool = False
    """The model's own question is not asked."""

    @property
    def piped(self) -> bool:
        """Whether questions come on standard input."""
        return self.questions is not None and str(self.questions) == STANDARD_INPUT and not self.no_ask

    @property
    def asks(self) -> bool:
        """Whether any flag or file of settings asks something."""
        return bool(self.ask or self.ask_at or self.every or (self.questions and not self.piped))


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The flags that `watch` and `live` share, by their names. `engine`: fields of EngineOptions, None where no one has
    set them; `given`: fields of the media plan that a flag, a variable or a file of settings says."""

    model: str | None = None
    mmproj: str | None = None
    system: str | None = None
    questions: QuestionOptions = field(default_factory=QuestionOptions)
    output: OutputOptions = field(default_factory=OutputOptions)
    alerts: AlertOptions = field(default_factory=AlertOptions)
    evidence: Path | None = None
    save_session: Path | None = None
    resume: Path | None = None
    checkpoint_every: float = 60.0
    engine: Mapping[str, Any] = field(default_factory=dict)
    given: Collection[str] = ()


def run_session(options: SessionOptions, kind: SourceKind, state: GlobalOptions) -> bool:
    """Run one session to its end; whether it ended by itself (False: a signal ended it).

    Raises OmniTideError for everything that is wrong with flags, source, saved session or model.
    """
    if options.save_session:
        check_writable(options.save_session, "--save-session")
    rules = options.alerts.rules()
    evidence = Evidence.into(options.evidence)
    if options.resume == Path(saves.LAST):
        options = replace(options, resume=saves.newest(kind.matches))
    resumption = Resumption(options.resume) if options.resume else None
    model = options.model or (resumption.saved.model.name if resumption else None)
    manifest = find_manifest(model, options.mmproj)
    check_encoders(manifest, options.mmproj)
    plan = kind.plan(options.given, resumption)
    wanted, system = dict(options.engine), options.system
    if resumption:
        wanted, system = resumption.options(wanted), resumption.system(system)
    asked = options.questions
    if asked.piped:
        _check_pipe(kind)
    is_talk = not (asked.asks or asked.no_ask or options.output.json_lines) and sys.stdin.isatty()
    is_talk = is_talk and sys.stdout.isatty()
    schedule = schedule_of(
        asked.ask,
        asked.ask_at,
        asked.every,
        None if asked.piped else asked.questions,
        silent=asked.no_ask,
        default=manifest.default_question if is_talk and not (asked.manual or rules) else "",
    )
    if resumption and not asked.no_ask:
        schedule = resumption.schedule(schedule, asked_anew=asked.asks)
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt(ends_input=kind.ends_input))
        outputs = open_outputs(state, options.output, kind.title, interrupt, resumed=resumption is not None)
        stack.callback(outputs.close)
        try:
            chosen = engine_options(manifest, wanted, unit_seconds=plan.unit_seconds, image_tokens=plan.image_tokens)
            chosen = with_recall(manifest, chosen)
            source = stack.enter_context(
                kind.open(
                    manifest,
                    plan,
                    interrupt,
                    resumed=resumption is not None,
                    say=outputs.waiting,
                    passing=chosen.change == "auto",
                )
            )
            if manifest.notice:
                outputs.console.hint(manifest.notice)
            if resumption is None and (left := saves.killed(kind.matches)):
                outputs.console.hint(_killed(left))
            if not (schedule or rules or asked.no_ask or asked.piped or (asked.manual and is_talk)):
                outputs.console.hint(kind.nothing_asked if kind.ends_input or not has_unread_pipe() else UNREAD_INPUT)
            if options.model is None and resumption is None and kind.is_foreign and not options.output.json_lines:
                outputs.console.hint(what_the_demo_knows())
            outputs.expect(source.units_total, kind.aspect_ratio(source), is_live=kind.is_live)
            files = model_files(manifest, options.mmproj, interrupt, outputs)
            template = manifest.prompt if system is None else replace(manifest.prompt, system_text=system)
            its_model = saved_model(model, files, template.system_text)
            if resumption:
                resumption.check_model(its_model)
            engine = stack.enter_context(load_engine(manifest, files, template, chosen, interrupt, outputs))
            watcher = Watcher(engine, rules) if rules else None
            journal = resumption.journal if resumption else Journal()
            media = kind.as_opened(source, plan)
            checkpointer = Checkpointer(
                engine,
                identity(its_model, chosen, media),
                schedule,
                outputs.sink,
                kind.position_after(source),
                file=options.save_session,
                every_s=options.checkpoint_every,
                resumed_from=resumption.path if resumption else None,
                journal=journal,
            )
        except Exception as error:
            if interrupt.requested:  # an input that was ended early is no fault of it
                raise KeyboardInterrupt from error
            outputs.sink.failed(error)
            raise
        outputs.attach(engine)
        at_once = kind.is_live or source.units_total is None
        piped = PipedLines(interrupt, _taker(schedule, outputs.sink), at_once=at_once) if asked.piped else None
        prompt = piped or outputs.prompt
        visitors = open_doorway(prompt.ring, outputs.sink)
        kept: list[Sink] = [Journalist(journal)]
        if visitors:
            kept.append(visitors)
        if evidence:
            kept.append(evidence.sink(journal, outputs.sink.emit, media))
        if any(rule.command for rule in rules):
            kept.append(AlertCommands(rules, journal, outputs.sink.emit, evidence))
        for each in kept:
            stack.callback(each.close)
        loop = SessionLoop(
            engine,
            source,
            Tee([*kept, outputs.sink]),
            interrupt,
            prompt=prompt,
            visitors=visitors,
            watcher=watcher,
            commands={
                "save": checkpointer.save,
                "help": lambda _: outputs.help(),
            },
            checkpointer=checkpointer,
            resumption=resumption,
            unwritten=outputs.unwritten,
            reaches_end=lambda clock: kind.reaches_end(source, plan, clock),
        )
        interrupt.on_ending(lambda: outputs.ending(checkpointer.saves))
        stack.callback(interrupt.on_ending, None)
        loop.run(kind.name(source), schedule, realtime=kind.is_paced, stays=(is_talk and kind.stays) or asked.piped)
        return not interrupt.requested


def open_doorway(ring: Callable[[], object], sink: Sink) -> Doorway | None:
    """Where other processes ask this session; None where there is no room for it, which is told."""
    try:
        return Doorway(runtime_dir(), ring)
    except OSError as error:
        why = f"omnitide ask can't reach this session: {error.strerror or error}"
        sink.emit(Notice("not-to-be-asked", why, "the session goes on without"))
    return None


def _killed(save: saves.Save) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(save.written))
    return (
        f"a session of this source was killed; it was last saved {when}, at {clock(save.media.clock)}."
        f" --resume {saves.LAST} goes on with it; {save.path} is its file"
    )


def _check_pipe(kind: SourceKind) -> None:
    """Raise UsageError where standard input can't be what questions come from."""
    if kind.ends_input:
        raise UsageError("--questions -: standard input is already the source", "give the questions in a file")
    if sys.stdin.isatty():
        raise UsageError("--questions -: standard input is a terminal", "type the questions; or pipe them in")


def _taker(schedule: Schedule, sink: Sink) -> Callable[[str, bool], str | None]:
    """What becomes of a line of standard input: a JSON object is as in a file of questions, other text is asked."""

    numbers = count(1)

    def take(line: str, is_over: bool) -> str | None:
        number = next(numbers)
        if not line.lstrip().startswith("{"):
            return line
        try:
            at, text = parse_question(line, f"--questions -, line {number}")
        except UsageError as error:
            sink.emit(Notice("bad-question", f"{error.message}; it isn't asked", error.hint))
            return None
        if at is None or is_over:
            return text
        schedule.add(Timed(at, text))
        return None

    return take


def what_the_demo_knows() -> str:
    """What whoever gives it a video of their own must know, since nothing else says it."""
    real = load_manifest(FOR_REAL_VIDEO)
    total = sum(file.size for file in (real.model, real.mmproj) if file)
    return (
        f"{DEFAULT_MODEL} is a tiny demo that knows coloured shapes, notes and a few words only; for real video:"
        f" --model {real.name} ({total / 1e9:.1f} GB to download)"
    )
