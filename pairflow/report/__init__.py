"""Pages, tables and figures: what they share here, one folder for each kind of page."""
