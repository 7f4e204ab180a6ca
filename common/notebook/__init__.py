"""The notebooks' only import of the course: `nb` with everything, and the number formats by name."""

from common.notebook import nb
from common.notebook.checkout import announce
from common.notebook.nb import bandwidth, binary, digits, seconds, variant

__all__ = ["bandwidth", "binary", "digits", "nb", "seconds", "variant"]
announce()
