"""A variant is chosen by three questions, in this order: does a row fit into registers, into L2, or into neither?

A row that a program holds is read once, and nothing is better. (On `big` at 16,384 columns `few programs` moves as few
bytes, because L1 has its row; but it reads the row twice.) Where 32 values for each of 1024 threads are not enough,
that is beyond 32,768 columns, the row has to be read twice. Then it counts how many rows are in flight between the two
reads: one for each program that runs. With one program on each SM the rows may fit into L2, which makes the second read
cheap. If they do not, a second read comes from memory in any case, and it is better to have many loads in flight.

A width alone decides nothing: 8192 columns come out of L2 on `big` and from memory on `small`, where L2 is a tenth and
the SMs are two fifths. 131,072 columns fit into L2 on `wide`, because it has few SMs.
"""

big_1024 = "L1"
big_8192 = "L2"
big_16384 = "memory"
small_8192 = "memory"
gain = 1.5
for_big_16384 = "one pass"
for_big_65536 = "few programs"
for_small_65536 = "many programs"
for_wide_131072 = "few programs"
