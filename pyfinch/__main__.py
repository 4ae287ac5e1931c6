"""``python -m pyfinch``."""

import sys

from pyfinch.cli import main

sys.exit(main())
