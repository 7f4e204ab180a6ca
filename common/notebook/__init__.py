"""The notebooks' only import of the course: `nb` with everything, and the number formats by name."""

from common.notebook import nb
from common.notebook.checkout import announce
from common.notebook.nb import bandwidth, binary, digits, seconds, variant
from common.show.plot import show_as_svg

__all__ = ["bandwidth", "binary", "digits", "nb", "seconds", "variant"]
show_as_svg()
announce()
