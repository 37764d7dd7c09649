"""The two ends of tests/bridge_speed.sh: a server of TCP, and a client that measures.

usage: bridge_speed.py serve IP PORT
       bridge_speed.py down|up IP PORT SECONDS     (after a second that does not count)
       bridge_speed.py echo IP PORT TIMES
"""

import socket
import sys
import threading
import time

CHUNK = 1 << 20


def serve(ip: str, port: int) -> None:
    """Does for each connection what its first byte asks for."""
    listener = socket.create_server((ip, port))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    """Gives, takes or echoes for as long as the other end is there."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    kind, room = connection.recv(1), bytearray(CHUNK)
    try:
        if kind == b"d":
            while True:
                connection.sendall(room)
        elif kind == b"u":
            while connection.recv_into(room):
                pass
        else:
            while some := connection.recv(CHUNK):
                connection.sendall(some)
    except OSError:
        pass


def move(connection: socket.socket, *, down: bool, seconds: float) -> str:
    """How fast bytes go one way, as the client sees it."""
    room = bytearray(CHUNK)
    begin, count, is_warm = time.perf_counter(), 0, False
    while True:
        if down:
            count += connection.recv_into(room)
        else:
            connection.sendall(room)
            count += len(room)
        elapsed = time.perf_counter() - begin
        if not is_warm and elapsed > 1:
            begin, count, is_warm = time.perf_counter(), 0, True
        elif is_warm and elapsed > seconds:
            return f"{8 * count / elapsed / 1e9:.2f} Gb/s"


def echo(connection: socket.socket, times: int) -> str:
    """How long a byte takes there and back."""
    spans = []
    for _ in range(times):
        begin = time.perf_counter()
        connection.sendall(b"x")
        connection.recv(1)
        spans.append(time.perf_counter() - begin)
    spans.sort()
    half, most = spans[len(spans) // 2], spans[len(spans) * 99 // 100]
    return f"{1e6 * half:.0f} us at half, {1e6 * most:.0f} us at 99 %"


def main() -> None:
    """Is the one end or the other."""
    kind, ip, port, *rest = sys.argv[1:]
    if kind == "serve":
        serve(ip, int(port))
    begin = time.perf_counter()
    connection = socket.create_connection((ip, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(kind[:1].encode())
    if kind == "echo":
        # The first waits for the server, too.
        first = echo(connection, 1).split(" us")[0]
        opened = f"open and first echo {1e3 * (time.perf_counter() - begin):.1f} ms (echo {first} us)"
        print(f"{echo(connection, int(rest[0]))}; {opened}")
    else:
        print(move(connection, down=kind == "down", seconds=float(rest[0])))


main()
