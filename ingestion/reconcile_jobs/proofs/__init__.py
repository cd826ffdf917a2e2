"""Proof by checksums: the canonical form of values, and the SQL that sums hashes of rows in buckets."""
