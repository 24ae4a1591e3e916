"""The command muster, which is the program in this package."""

import os
import sys


def main() -> None:
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
    if sys.platform == "win32":
        import subprocess

        program = os.path.join(folder, "muster.exe")
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    program = os.path.join(folder, "muster")
    os.execv(program, [program, *sys.argv[1:]])
