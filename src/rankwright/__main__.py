"""``python -m rankwright`` and the ``rankwright`` command."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from rankwright.cli import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
