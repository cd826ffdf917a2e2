"""How long staging is kept: what may be purged of it, and the purge."""
