"""A small seeded world, one second at a time, and questions about it with true answers: what TideBench draws from.

A second shows one to three coloured shapes, a printed digit or letter, or something unclear, and sounds like a spoken
word, a note, silence, or something unclear. A stream is drawn from a split and a seed:

    from omnitide_cli.bench.world.split import TEST
    from omnitide_cli.bench.world.stream import any_stream
    from omnitide_cli.bench.world.render import units_of

    stream = any_stream(TEST, seed=7, units=100, questions=10)
    for unit, due in zip(units_of(stream), stream.due()):
        engine.ingest(unit)                     # a MediaUnit: 112 × 112 frame, 16 kHz sound with its neighbours
        for question in due:                    # kind "now", "recall" or "count"; sense "image", "sound" or "both"
            ...                                 # text, answer (exact), age in units (0: now; None: never there)

The same split and seed give the same stream everywhere, and `units_of` the same units. TRAINING, VALIDATION and TEST
share no seed; VALIDATION and TEST speak with voices and paint backgrounds that training never has. Choose settings on
VALIDATION, report TEST. An answer is right if it equals `question.answer` to the letter.

split, key ← scene ← picture, sound ← glyph, words; question: what may be asked and what is true; stream: scenes and
questions; canvas, outside: pixels; render: units; clip: a video file. Numpy and PyAV, no model.
"""
