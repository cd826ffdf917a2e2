"""The erasure of keys: from staging, from all that its models keep, and from old versions of the tables."""
