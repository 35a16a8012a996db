"""Forked children."""

import os
import warnings

import pytest


@pytest.fixture
def fork():
    """Run a function in a forked child, whose exit code is what it returns; 99 if it raises. Gives the process id."""

    def start(function):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of forks beside threads
            child = os.fork()
        if child:
            return child
        code = 99
        try:
            code = function()
        finally:
            os._exit(code)

    return start
