"""`python -m ck_main.demo_site`: serve the demo's web site. See `--help`."""

import sys

from ck_main.demo_site.site import main

if __name__ == "__main__":
    sys.exit(main())
