"""What a pair is: the contract of its files, how they are found, loaded and named."""
