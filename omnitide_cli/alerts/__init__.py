"""Rules that a stream is watched for: a yes-or-no question each, told once when it comes true."""
