"""The reader of Bigtable: its change streams, and the cells that were there before."""
