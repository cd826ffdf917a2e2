"""How a job meets the world: command line, console, clock, signals, errors, the Spark session, and runs of dbt."""
