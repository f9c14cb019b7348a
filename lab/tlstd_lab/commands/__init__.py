"""The laboratory's commands, which join ``tlstd`` by entry points: one file each."""
