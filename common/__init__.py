"""The harness of the course: finds pairs, proves their versions equal, times them, and says what may be believed."""

import sys
from importlib.util import find_spec

# Here and not in each program: whoever forgot to activate the environment gets one line, and no traceback
if missing := [name for name in ("msgspec", "numpy", "psutil", "pynvml", "rich", "torch") if not find_spec(name)]:
    cure = "`source .venv/bin/activate` after `make setup`, or `pip install -r requirements.txt`"
    sys.exit(f"needs the packages {', '.join(missing)}: {cure}")
