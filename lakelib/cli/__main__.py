"""`python -m lakelib.cli` is the command `lake`."""

import sys

from lakelib.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
