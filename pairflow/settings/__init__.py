"""What all settings share, of the workflow and of the kinds of data: base classes, types and checks."""
