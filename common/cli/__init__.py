"""What the programs are asked for, and what a chapter's compare.py needs."""
