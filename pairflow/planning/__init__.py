"""What an experiment will take: its jobs, what each costs, and when all are done."""
