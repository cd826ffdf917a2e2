"""Spanner's change streams: queries, windows, the Spark data source, the backfill, and the job that appends them."""
