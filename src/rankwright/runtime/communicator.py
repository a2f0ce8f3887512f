"""Communicator: connections between processes that work on one task at the same time, each with all others."""

from __future__ import annotations

import selectors
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

_CONNECT_SECONDS = 60.0  # until all others must have connected
_SILENT_SECONDS = 1800.0  # until a process that sends nothing counts as lost; others may have much more to do before
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))  # a machine without power is noticed
_RANK = struct.Struct("<16sI")


class ConnectionLostError(Exception):
    """The error of a task whose connection with another process that works on it was lost."""


class Listener:
    """A socket where other processes connect, on a port that the system found free.

    Parameters
    ----------
    host : str
        The name or address of this machine, as the others know it.
    """

    def __init__(self, host: str) -> None:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        self.socket = socket.socket(family, kind)
        self.socket.bind((address[0], 0))
        self.socket.listen(128)
        self.address: tuple[str, int] = (host, int(self.socket.getsockname()[1]))

    def connect(self, secret: bytes, rank: int, addresses: Sequence[tuple[str, int]]) -> Communicator:
        """Connect with all others: to those of lower rank, while those of higher rank connect here.

        Parameters
        ----------
        secret : bytes
            16 bytes that a process must send to be taken for one of the others.
        rank : int
            The number of this process.
        addresses : sequence
            The address of the listener of each process, by rank.
        """
        end = monotonic() + _CONNECT_SECONDS
        found: dict[int, socket.socket] = {}
        opened: list[socket.socket] = []
        try:
            for other in range(rank):
                found[other] = socket.create_connection(addresses[other], timeout=max(end - monotonic(), 0.1))
                opened.append(found[other])
                found[other].sendall(_RANK.pack(secret, rank))
            while len(found) < len(addresses) - 1:
                self.socket.settimeout(max(end - monotonic(), 0.1))
                stranger, _ = self.socket.accept()
                opened.append(stranger)
                stranger.settimeout(max(end - monotonic(), 0.1))
                said, other = _RANK.unpack(_receive_exactly(stranger, _RANK.size))
                if said == secret and rank < other < len(addresses) and other not in found:
                    found[other] = stranger
                else:
                    stranger.close()
        except (OSError, ConnectionLostError) as error:
            for each in opened:
                each.close()
            raise ConnectionLostError(f"process {rank} of {len(addresses)} cannot connect with the others") from error
        finally:
            self.close()
        return Communicator(rank, len(addresses), found)

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


class Communicator:
    """The connections of one process with all the others that work on the same task.

    Parameters
    ----------
    rank : int
        The number of this process, from 0 up.
    size : int
        The number of all processes.
    sockets : mapping of int to socket
        The connection with each of the others, by rank.
    """

    def __init__(self, rank: int, size: int, sockets: dict[int, socket.socket]) -> None:
        self.rank, self.size, self.sockets = rank, size, sockets
        for each in sockets.values():
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                with suppress(AttributeError, OSError):  # not on every system
                    each.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        raise TypeError("the connections of a process cannot be sent to another one")

    def exchange(self, outgoing: Sequence[memoryview], incoming: Sequence[memoryview]) -> None:
        """Send bytes to every other process and receive bytes from it, all at the same time.

        Raise ConnectionLostError if one of them is gone, or silent for too long.

        Parameters
        ----------
        outgoing, incoming : sequence of memoryview
            What each process is sent, and where to put what it sends, as bytes and by rank. Those of this process
            itself are not looked at. Both sides must know the sizes.
        """
        sending = {rank: outgoing[rank] for rank in self.sockets if len(outgoing[rank])}
        receiving = {rank: incoming[rank] for rank in self.sockets if len(incoming[rank])}
        try:
            for rank in list(sending):
                _send_some(self.sockets[rank], rank, sending)
            with selectors.DefaultSelector() as selector:
                for rank in {*sending, *receiving}:
                    selector.register(self.sockets[rank], _list_events(rank, sending, receiving), rank)
                while selector.get_map():
                    ready = selector.select(_SILENT_SECONDS)
                    if not ready:
                        raise ConnectionLostError(f"nothing was heard of another process for {_SILENT_SECONDS:g} s")
                    for key, events in ready:
                        if events & selectors.EVENT_WRITE:
                            _send_some(self.sockets[key.data], key.data, sending)
                        if events & selectors.EVENT_READ:
                            _receive_some(self.sockets[key.data], key.data, receiving)
                        wanted = _list_events(key.data, sending, receiving)
                        if not wanted:
                            selector.unregister(key.fileobj)
                        elif wanted != key.events:
                            selector.modify(key.fileobj, wanted, key.data)
        except OSError as error:
            raise ConnectionLostError(f"a connection with another process was lost ({type(error).__name__})") from error

    def broadcast(self, content: bytes | None) -> bytes:
        """Return the bytes that the first process has, which all others pass as None."""
        size = bytearray(len(content or b"").to_bytes(8, "little"))
        self._copy_from_first(memoryview(size))
        found = bytearray(content) if content is not None else bytearray(int.from_bytes(size, "little"))
        self._copy_from_first(memoryview(found))
        return bytes(found)

    def _copy_from_first(self, view: memoryview) -> None:
        """Copy the bytes of the first process to all others."""
        nothing = [memoryview(b"")] * self.size
        if self.rank == 0:
            self.exchange([view] * self.size, nothing)
        else:
            self.exchange(nothing, [view, *nothing[1:]])

    def gather_at_first(self, own: memoryview, incoming: Sequence[memoryview]) -> None:
        """Send bytes to the first process, which puts those of each process where they belong, by rank."""
        nothing = [memoryview(b"")] * self.size
        if self.rank == 0:
            self.exchange(nothing, incoming)
        else:
            self.exchange([own, *nothing[1:]], nothing)

    def close(self) -> None:
        """Close all connections."""
        for each in self.sockets.values():
            each.close()


def _list_events(rank: int, sending: dict[int, memoryview], receiving: dict[int, memoryview]) -> int:
    """Return what is still to be done on a connection, as flags of selectors."""
    return selectors.EVENT_WRITE * (rank in sending) | selectors.EVENT_READ * (rank in receiving)


def _send_some(connection: socket.socket, rank: int, sending: dict[int, memoryview]) -> None:
    """Send as much as the system takes now; what is left is sent later."""
    try:
        n = connection.send(sending[rank])
    except (BlockingIOError, InterruptedError):
        return
    sending[rank] = sending[rank][n:]
    if not len(sending[rank]):
        del sending[rank]


def _receive_some(connection: socket.socket, rank: int, receiving: dict[int, memoryview]) -> None:
    """Receive what there is."""
    try:
        n = connection.recv_into(receiving[rank])
    except (BlockingIOError, InterruptedError):
        return
    if n == 0:
        raise ConnectionLostError(f"process {rank} is gone")
    receiving[rank] = receiving[rank][n:]
    if not len(receiving[rank]):
        del receiving[rank]


def _receive_exactly(connection: socket.socket, n: int) -> bytes:
    """Receive so many bytes."""
    found = b""
    while len(found) < n:
        more = connection.recv(n - len(found))
        if not more:
            raise ConnectionLostError("a process that connected said nothing")
        found += more
    return found
