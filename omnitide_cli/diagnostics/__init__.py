"""What `omnitide doctor` looks at."""
