"""The plan of a run: where files lie, which jobs make them, and whether they were made as configured."""
