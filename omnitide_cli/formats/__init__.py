"""What leaves the program: NDJSON, transcripts, pictures, and how numbers and times are written."""
