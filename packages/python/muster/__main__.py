"""python -m muster is the command muster."""

from ._main import main

main()
