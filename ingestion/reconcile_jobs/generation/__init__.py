"""Models written for the tables of a stream: what the records show, what it is declared as, and which files change."""
