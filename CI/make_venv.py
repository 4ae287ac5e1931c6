"""Make a virtual environment: ``python CI/make_venv.py .venv``. Says what to do if Python is too old."""

import sys
import venv


def main() -> int:
    if sys.version_info < (3, 11):
        print(
            f"pyfinch needs Python 3.11 or newer, {sys.executable} is {sys.version.split()[0]}; "
            "name another one: make PYTHON=python3.12 …",
            file=sys.stderr,
        )
        return 1
    venv.create(sys.argv[1], with_pip=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
