"""`python -m tests.releases COMMIT NAME` keeps a released version for the tests."""

import sys

from tests.releases.released import keep

if __name__ == "__main__":
    keep(*sys.argv[1:])
