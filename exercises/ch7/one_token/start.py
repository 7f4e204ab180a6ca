"""Seven figures of one token, from a model's shapes and a memory's rate.

Yours: replace each None. The model and the machine are described in the exercise's text.
"""

weights_gb = None  # GB of weights that a token reads
row_kib = None  # KiB that a token adds to the cache
even_rows = None  # thousand rows
tokens_s = None  # tokens a second
eight_bits = None  # a ratio of rates
together = None  # tokens a second, of all sequences
claim = None  # "first", "second", "both" or "neither"
