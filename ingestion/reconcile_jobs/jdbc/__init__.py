"""Snapshots of a database's tables over JDBC: what each database does for it is one module."""
