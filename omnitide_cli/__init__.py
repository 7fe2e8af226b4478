"""OmniTide: endless audio-video-text sessions that stay answerable on one machine."""

__version__ = "0.1.0"
