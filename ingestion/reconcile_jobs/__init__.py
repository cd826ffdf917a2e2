"""What the jobs that spark-submit runs share."""
