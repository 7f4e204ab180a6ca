"""The notebooks' one import of the course: `nb` for all of it, and how numbers are written by their own names."""

from common.notebook import nb
from common.notebook.nb import bandwidth, binary, digits, seconds, variant

__all__ = ["bandwidth", "binary", "digits", "nb", "seconds", "variant"]
