"""Makes the report of one experiment: from metric rows to one self-contained HTML page."""
