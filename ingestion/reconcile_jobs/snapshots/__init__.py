"""Snapshots of a source's own rows: of CSV files, of tables over JDBC, of Spanner's tables."""
