class OperatorError(Exception):
    """A mistake of the person who runs the command: shown without a traceback, with an exit status."""

    status = 2
