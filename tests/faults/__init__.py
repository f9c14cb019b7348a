"""Fault injection: exceptions, interrupts, threads, odd arrays, random inputs, crafted files, tried in forked children.

The tests try a few of each, ``tlstd campaign`` many. Nothing here needs pytest.
"""
