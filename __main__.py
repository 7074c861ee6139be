"""Where the command line starts: `reasonctl` and `python -m reasonctl`."""

import sys


def main() -> None:
    """Run the command line; a Ctrl-C while it still loads is exit code 130 too."""
    try:
        from .cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
