"""What `omnitide doctor` looks at. No check raises, and none imports a library into this process: see probe.py."""
