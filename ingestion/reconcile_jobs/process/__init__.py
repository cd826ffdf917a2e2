"""How a job meets the world: its command line, console, clock, signals and errors, and dbt in its process."""
