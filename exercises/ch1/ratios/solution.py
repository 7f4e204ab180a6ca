"""Four ratios from bytes: where every version waits for the memory, the ratio of the times is that of the bytes.

`one_kernel`: 2 arrays of 9, so 2 / 9 = 0.22. `dropout`: 18 bytes an element against 16, so 1.125; an array of single
bytes is small beside arrays of floats. `softmax`: 4 arrays against 2, so 2, if no cache has the row when it is read
again. `chain`: 12 arrays against 3, so 4, or more if the five separate kernels move their bytes more slowly than the
one. A range is honest if it says how far the simple model can be off. Launches do not count here: five of them are some
microseconds of work for the CPU, and the kernels run for hundreds.
"""

one_kernel = (0.19, 0.26)
dropout = (1.05, 1.2)
softmax = (1.5, 2.1)
chain = (3.5, 5.5)
