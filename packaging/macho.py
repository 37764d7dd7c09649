#!/usr/bin/env python3
"""Join Mach-O programs into one for several machines, or inspect such a program.

usage: macho.py join OUT PROGRAM...
       macho.py check PROGRAM [LIBRARY=STUB.tbd]...
check fails unless each part is an executable for macOS 11, finds its symbols in the libraries' stubs, and has the hash
of each of its pages in its signature, without which Apple's processors start no program.
"""

import hashlib
import re
import struct
import sys
from pathlib import Path

FAT, MACHO = 0xCAFEBABE, 0xFEEDFACF
MACHINES = {0x0100000C: "arm64", 0x01000007: "x86_64"}
PAGE_BITS = 14  # of arm64's pages, which x86-64 takes too
LOAD_DYLIB, MAIN, SYMTAB, SIGNATURE, BUILD_VERSION = 0xC, 0x80000028, 0x2, 0x1D, 0x32
EXECUTE = 2
MACOS, MACOS_11 = 1, 0x000B0000
EXTERNAL, DEBUG, TYPE = 0x01, 0xE0, 0x0E


def join(out: Path, programs: list[Path]) -> None:
    """Write a universal binary: a big-endian table of parts, then the parts, each at a page."""
    parts = [program.read_bytes() for program in programs]
    head = struct.pack(">II", FAT, len(parts))
    place, body = 1 << PAGE_BITS, b""
    for part in parts:
        _, cpu, sub = struct.unpack_from("<III", part)
        head += struct.pack(">5I", cpu, sub, place + len(body), len(part), PAGE_BITS)
        body += part + bytes(-len(part) % (1 << PAGE_BITS))
    out.write_bytes(head.ljust(place, b"\0") + body)
    out.chmod(0o755)


def parts_of(program: bytes) -> list[bytes]:
    """Return the parts of a universal binary."""
    magic, count = struct.unpack_from(">II", program)
    assert magic == FAT, f"no universal binary: {magic:x}"
    tables = (struct.unpack_from(">5I", program, 8 + 20 * i) for i in range(count))
    return [program[offset : offset + size] for _, _, offset, size, _ in tables]


def undefined(part: bytes, at: int) -> dict[str, int]:
    """Return the symbols that the symbol table at a load command takes from libraries, with the library's ordinal."""
    symbols, count, strings, _ = struct.unpack_from("<4I", part, at + 8)
    found = {}
    for entry in range(symbols, symbols + 16 * count, 16):
        name, kind, _, described, _ = struct.unpack_from("<IBBHQ", part, entry)
        if kind & EXTERNAL and not kind & (DEBUG | TYPE):
            end = part.index(b"\0", strings + name)
            found[part[strings + name : end].decode()] = described >> 8
    return found


def check_signature(part: bytes, at: int) -> int:
    """Compare each page's hash with the one in the signature's code directory; return their number."""
    offset, _ = struct.unpack_from("<2I", part, at + 8)
    _, _, blobs = struct.unpack_from(">3I", part, offset)
    places = dict(struct.unpack_from(">2I", part, offset + 12 + 8 * i) for i in range(blobs))
    directory = offset + places[0]
    hashes, _, _, slots, limit = struct.unpack_from(">5I", part, directory + 16)
    size, kind, _, page_bits = struct.unpack_from(">4B", part, directory + 36)
    assert (size, kind, limit) == (32, 2, offset), "a signature without SHA-256 of all that is before it"
    for slot in range(slots):
        start = slot << page_bits
        there = part[directory + hashes + size * slot :][:size]
        assert there == hashlib.sha256(part[start : min(start + (1 << page_bits), limit)]).digest(), f"page {slot}"
    assert slots == -(-limit >> page_bits), "pages without a hash"
    return slots


def check(part: bytes, stubs: dict[str, set[str]]) -> str:
    """Return what a part is."""
    magic, cpu, _, kind, count, _ = struct.unpack_from("<6I", part)
    assert (magic, kind) == (MACHO, EXECUTE), "no executable for 64 bits"
    libraries, commands, at = [], {}, 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", part, at)
        commands[command] = at
        if command == LOAD_DYLIB:
            name = at + struct.unpack_from("<I", part, at + 8)[0]
            libraries.append(part[name : part.index(b"\0", name)].decode())
        at += size
    assert MAIN in commands, "no entry point"
    platform, oldest = struct.unpack_from("<2I", part, commands[BUILD_VERSION] + 8)
    assert (platform, oldest) == (MACOS, MACOS_11), f"platform {platform}, version {oldest:x}"
    symbols = undefined(part, commands[SYMTAB])
    assert symbols, "no symbols of libraries"
    for symbol, ordinal in symbols.items():
        library = libraries[ordinal - 1]
        assert symbol in stubs[library], f"{library} has no {symbol}"
    pages = check_signature(part, commands[SIGNATURE]) if SIGNATURE in commands else 0
    assert pages or MACHINES[cpu] != "arm64", "arm64 without a signature"
    return f"{MACHINES[cpu]}: macOS 11, {len(symbols)} symbols of {len(libraries)} libraries, {pages} signed pages"


def words_of(stub: str) -> set[str]:
    """Return what a stub of a library exports."""
    return set(re.findall(r"[A-Za-z_$][\w$.]*", Path(stub).read_text()))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["join", out, *programs] if programs:
            join(Path(out), [Path(program) for program in programs])
        case ["check", program, *named]:
            stubs = {library: words_of(stub) for library, _, stub in (word.partition("=") for word in named)}
            for part in parts_of(Path(program).read_bytes()):
                print(check(part, stubs))
        case _:
            sys.exit(__doc__)
