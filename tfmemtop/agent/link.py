"""The connection to the engine: a unix SOCK_SEQPACKET socket that never makes the script wait."""

import _socket
import errno
import fcntl
import os
from typing import Optional

from . import real_threads

QUEUE = 256
"""The most packets that wait while the socket is full; later ones are dropped and counted."""

_LONGEST = 107  # bytes of a socket's path, at most, that the kernel accepts
_FOR_NOW = (errno.ENOBUFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE)

_FLAGS = _socket.MSG_DONTWAIT | _socket.MSG_NOSIGNAL  # the script may have set SIGPIPE so that it ends the process


class Link:
    """A connection to *path*, opened by the first packet. After the engine has gone it sends nothing.

    ``dropped`` counts packets that could not be sent. No method blocks, and none raises an error of the kernel. An
    ``OSError`` without a number is not the kernel's: a signal handler or audit hook of the script has raised it, and
    it passes.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.dead = len(path.encode("utf-8", "surrogateescape")) > _LONGEST
        self.dropped = 0
        self._socket: Optional[_socket.socket] = None
        self._identity: Optional[tuple[int, int]] = None
        self.waiting: list[bytes] = []
        """The packets that wait for room."""
        # Acquired only without waiting: a signal handler may call this code again while its own thread holds the lock.
        self._sending = real_threads.allocate_lock()

    @property
    def opened(self) -> bool:
        """Whether the engine has been reached."""
        return self._socket is not None

    def send(self, packet: bytes) -> None:
        """Send *packet*, or keep it until the socket has room."""
        if self.dead:
            return
        if len(self.waiting) >= QUEUE:
            self.dropped += 1
            return
        self.waiting.append(packet)
        self.pump()

    def offer(self, packet: bytes) -> None:
        """Send *packet* now or drop it, since a newer one will follow."""
        if self.dead:
            return
        self.pump()
        if self.waiting or not self._sending.acquire(False):
            self.dropped += 1
            return
        try:
            if not self._try(packet):
                self.dropped += 1
        finally:
            self._sending.release()

    def pump(self) -> None:
        """Send what waits, as far as the socket has room."""
        # A thread that finds another one sending may return: the other checks the queue again after its release.
        while self.waiting and not self.dead and self._sending.acquire(False):
            try:
                while self.waiting:
                    packet = self.waiting.pop(0)
                    if not self._try(packet):
                        self.waiting.insert(0, packet)
                        return
            finally:
                self._sending.release()

    def listen(self) -> "list[bytes]":
        """Return the packets that the engine has sent. If the engine has gone, that is noticed here."""
        packets: list[bytes] = []
        while self._socket is not None and not self.dead:
            try:
                packet = self._socket.recv(65536, _socket.MSG_DONTWAIT) if self._ours() else b""
            except BlockingIOError:
                break
            except OSError:
                packet = b""
            if packet:
                packets.append(packet)
            else:
                self.close()
        return packets

    def close(self) -> None:
        """Close the connection for good. A descriptor that the script has closed and reused is left alone."""
        self.dead = True
        self.waiting.clear()
        line, self._socket = self._socket, None
        if line is not None:
            if self._is(line):
                line.close()
            else:
                line.detach()

    def _try(self, packet: bytes) -> bool:
        """Try to send *packet*; return whether it is done with: it was sent, or it never will be."""
        try:
            if self._socket is None:
                self._open()
            if self._socket is None or not self._ours():
                self.close()
                return True
            self._socket.send(packet, _FLAGS)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno is None:
                raise
            if error.errno in _FOR_NOW:
                return False
            if error.errno == errno.EMSGSIZE:
                self.dropped += 1
            else:
                self.close()
        return True

    def _open(self) -> None:
        """Connect, or raise ``BlockingIOError`` while the engine is too busy to accept."""
        low = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
        try:
            low.setblocking(False)
            low.connect(self.path)
            line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, high_copy(low.fileno()))
        finally:
            low.close()
        line.setblocking(False)
        self._identity = descriptor_identity(line.fileno())
        self._socket = line

    def _ours(self) -> bool:
        return self._socket is not None and self._is(self._socket)

    def _is(self, line: _socket.socket) -> bool:
        """Return whether the descriptor is still the one that was opened here: daemons close all and open others."""
        return descriptor_identity(line.fileno()) == self._identity


def descriptor_identity(descriptor: int) -> "Optional[tuple[int, int]]":
    """Return what distinguishes the file of *descriptor* from others; ``None`` if it is not open."""
    try:
        status = os.fstat(descriptor)
    except OSError as error:
        if error.errno is None:  # raised by a signal handler, not by the kernel
            raise
        return None
    return status.st_dev, status.st_ino


def high_copy(descriptor: int) -> int:
    """Return a copy of *descriptor* with a high number, so that the script's own descriptors keep their numbers."""
    for least in (900, 200, 3):
        try:
            return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, least)
        except OSError as error:
            if error.errno != errno.EINVAL:  # beyond the limit of open files
                raise
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
