"""Samples in shards, on one machine or on many: Krylov LSTD for logs that fit into no single memory."""
