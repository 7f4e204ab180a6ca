"""What a second read of a row costs depends on where the row is then, and a row that is held must fit into registers.

First compare the rows in flight of an SM with L1, then those of all SMs with L2. `fits`: 128 KiB in an SM, of 256. A
read from L1 costs an eighth of one from memory, so the ratio is nearly 1. `between`: 256 KiB would fill all of L1, and
33 MiB are in L2, of 60. A read from L2 costs half as much as one from memory, so one read less is worth a quarter of
the two that are left. `beyond`: 66 MiB do not fit into L2. All reads come from memory: 5 matrices against 3.

The bytes are the first guess. The other three ask what float16 does not halve. `short`: L1 has the rows, and the bytes
say nearly 1 again, but each pass also waits for its sum and has its instructions. As in softmax, that shows once there
are half as many bytes. `spilled`: what spills is float32 in either case. Count in times of a matrix of float32: three
passes move 4, one pass takes 4 / 1.23 = 3.25, where its bytes alone take 2. So the spills take 1.25. In float16 they
stand beside half the bytes: less than 1.23, and not less than 2 / (1 + 1.25) = 0.89. `half`: the bytes say 10 / 8 =
1.25, but the instructions that draw random numbers stay.
"""

fits = (0.95, 1.25)
between = (1.1, 1.45)
beyond = (1.5, 1.8)
short = (1.5, 2.0)
spilled = (0.9, 1.22)
half = (1.05, 1.25)
