"""What users ask for without the workflow: samples, scores and metrics, and files with them."""
