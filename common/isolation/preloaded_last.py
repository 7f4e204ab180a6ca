"""Imported last by a forkserver: garbage collection in its children leaves alone what was imported before their start.

Else each collection in each child walks over 300,000 objects of torch and Triton, which stay.
"""

import gc

gc.freeze()
