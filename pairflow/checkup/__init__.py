"""What a machine has of all that the workflow needs: a line for each, whatever is broken."""
