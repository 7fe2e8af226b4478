"""A small seeded world: coloured shapes and musical notes, one second at a time, with true answers.

picture, sound → scene → question (what may be asked, what is true) and clip (a scene as MP4).
Needs numpy only; clip alone needs PyAV.
"""
