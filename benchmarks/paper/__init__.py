"""The paper's tables: printed values beside what finished experiments measured, on one page."""
