"""What the monitoring views say, and what reports make of it."""
