"""What the settings of the workflow and those of the kinds of data share: base classes, types and checks."""
