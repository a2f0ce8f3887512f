"""``python -m rankwright`` and the ``rankwright`` command."""

import sys


def main() -> None:
    """Run the command line."""
    from rankwright.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
