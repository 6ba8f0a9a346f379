"""A small NBD client: fixed newstyle, simple replies, any number of commands under way."""

import os
import socket
import struct

READ, WRITE, DISCONNECT, FLUSH, TRIM, CACHE, WRITE_ZEROES = range(7)
FUA = 1
NO_HOLE = 2

# A transmission flag: the server takes trims.
SEND_TRIM = 1 << 5

_MAGIC = 0x4E42444D41474943
_OPTION = 0x49484156454F5054
_OPTION_REPLY = 0x3E889045565A9
_REQUEST = 0x25609513
_REPLY = 0x67446698


class Gone(Exception):
    """The server hung up."""


class Error(Exception):
    """The server refused a command; `errno` says why."""

    def __init__(self, errno):
        super().__init__(os.strerror(errno))
        self.errno = errno


class Client:
    """One connection to an export. Replies come in any order: send() gives a handle, receive() tells whose came."""

    def __init__(self, path, timeout=30.0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.buffer = bytearray()
        self.under_way = {}
        self.next = 1
        try:
            self.socket.connect(str(path))
            self._negotiate()
        except BaseException:
            self.socket.close()
            raise

    def _negotiate(self):
        magic, option, _flags = struct.unpack(">QQH", self._take(18))
        if (magic, option) != (_MAGIC, _OPTION):
            raise Error(71)
        go, body = 7, struct.pack(">IH", 0, 0)
        self._put(struct.pack(">I", 3) + struct.pack(">QII", _OPTION, go, len(body)) + body)
        while True:
            magic, _option, kind, length = struct.unpack(">QIII", self._take(20))
            body = self._take(length)
            if magic != _OPTION_REPLY or kind & 0x80000000:
                raise Error(71)
            if kind == 1:
                return
            if kind == 3 and body[:2] == b"\0\0":
                self.size, self.flags = struct.unpack(">QH", body[2:12])
            if kind == 3 and body[:2] == b"\0\3":
                # Minimum, preferred, maximum.
                self.block_sizes = struct.unpack(">III", body[2:14])

    def _put(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Gone(str(error)) from None

    def _take(self, count):
        while len(self.buffer) < count:
            try:
                more = self.socket.recv(max(count - len(self.buffer), 1 << 16))
            except OSError as error:
                raise Gone(str(error)) from None
            if not more:
                raise Gone("the server hung up")
            self.buffer += more
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def send(self, kind, offset=0, length=0, data=b"", flags=0):
        """Sends a command and returns its handle."""
        handle, self.next = self.next, self.next + 1
        self.under_way[handle] = length if kind == READ else 0
        self._put(struct.pack(">IHHQQI", _REQUEST, flags, kind, handle, offset, length) + data)
        return handle

    def receive(self):
        """The next reply: its handle, 0 or an errno, and the bytes that were read."""
        magic, errno, handle = struct.unpack(">IIQ", self._take(16))
        if magic != _REPLY:
            raise Error(71)
        length = self.under_way.pop(handle)
        return handle, errno, self._take(length) if not errno else b""

    def call(self, kind, offset=0, length=0, data=b"", flags=0):
        """A command from its request to its reply; returns the bytes that were read."""
        handle = self.send(kind, offset, length, data, flags)
        found, errno, read = self.receive()
        assert found == handle, "something else was under way"
        if errno:
            raise Error(errno)
        return read

    def read(self, offset, length):
        """Reads."""
        return self.call(READ, offset, length)

    def write(self, offset, data, flags=0):
        """Writes."""
        self.call(WRITE, offset, len(data), data, flags)

    def flush(self):
        """Makes everything answered so far durable."""
        self.call(FLUSH)

    def trim(self, offset, length, flags=0):
        """Gives a range back."""
        self.call(TRIM, offset, length, flags=flags)

    def close(self):
        """Takes leave, and hangs up."""
        try:
            self._put(struct.pack(">IHHQQI", _REQUEST, 0, DISCONNECT, 0, 0, 0))
        except Gone:
            pass
        self.socket.close()
