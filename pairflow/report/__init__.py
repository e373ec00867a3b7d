"""Makes HTML pages with tables and figures: shared modules here, and one folder for each page."""
