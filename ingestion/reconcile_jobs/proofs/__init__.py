"""Proof by checksums: the canonical form of values, sums of hashes in buckets, and their comparison."""
