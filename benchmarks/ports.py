"""Ports of this machine for servers that are started a while later."""

import socket


def held_port() -> socket.socket:
    """A socket on a free port of the loopback address (`getsockname()[1]`), which nobody else gets until it is closed.

    A number that was free and is let go of may be anybody's a moment later: each connection takes one. A server that
    sets SO_REUSEADDR, as they do, can listen on the port while it is held.
    """
    own = socket.socket()
    own.bind(("127.0.0.1", 0))
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after the bind, which is to share with nobody
    return own
