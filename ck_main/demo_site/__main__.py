"""`python -m ck_main.demo_site`: serve the demo's web site. See `--help`."""

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import sys

from ck_main.demo_site.site import main

if __name__ == "__main__":
    sys.exit(main())
