"""What a second read costs depends on where the row is then, and a row that is held must fit into registers.

`fits`: 17 MiB are in flight, and an H200 has 60 MiB of L2. So two of the three reads come out of a cache, and the ratio
is nearly 1. `between`: 33 MiB of L2"s 60, beside what is written: it is more than 1, and less than 2. `beyond`: 66 MiB
do not fit. All reads come from memory, and the ratio is nearly 4 / 2.

`backward`: two inputs, read twice, and one result are 5 matrices, against 3: 1.67. `spilled`: 2 * 64 values for a
thread with 64 registers. They go out to memory and come back, which costs more than to read the row a second time.

`half`: the bytes say 10 / 8 = 1.25. But float16 halves the time that memory needs, and not that of the instructions
that draw random numbers. So less than 1.25 is won. In each case the bytes give the first guess. Then ask what else they
have to be compared with: a cache, the registers, the instructions.
"""

fits = (0.95, 1.25)
between = (1.1, 1.8)
beyond = (1.6, 2.1)
backward = (1.45, 1.8)
spilled = (0.4, 0.9)
half = (1.05, 1.25)
