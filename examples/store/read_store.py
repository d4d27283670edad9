#!/usr/bin/env python3
"""Read the node store of uwf without uwf, as docs/storage.md describes it.

    read_store.py STORE list         hash, kind and place of every node and tombstone
    read_store.py STORE get HASH     a node as JSON
    read_store.py STORE seals        hash and seal of every sealed node
    read_store.py STORE homes        the homes that use the store

It only reads. A store of version 1 or of the TypeScript uwf is refused. Packs need Python 3.14, the module
zstandard, or the program zstd.
"""

import json
import pathlib
import re
import struct
import subprocess
import sys

HEADER = struct.Struct(">cIQI")  # kind, length of the body, hash, CRC-32C of the 13 bytes before
MAX_BODY = (64 << 20) + 1024
GROUPS = {b"n": "content", b"t": "content", b"N": "content", b"s": "seal", b"S": "seal", b"h": "home", b"H": "home"}
ABSENT = (b"N", b"S", b"H")  # nothing older counts
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _crc_table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        yield n


CRC = list(_crc_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def hash_text(number):
    return "".join(DIGITS[number >> shift & 31] for shift in range(60, -5, -5))


def scan(data):
    """Yields the records of a stream; after something that isn't one, it looks for the next."""
    at = 0
    while at + HEADER.size <= len(data):
        kind, length, number, crc = HEADER.unpack_from(data, at)
        end = at + HEADER.size + length
        if kind not in GROUPS or length > MAX_BODY or end > len(data) or crc32c(data[at : at + 13]) != crc:
            at += 1
            continue
        yield at, kind, number, data[at + HEADER.size : end]
        at = end


def decompress(path):
    try:
        from compression import zstd  # Python 3.14

        return zstd.decompress(path.read_bytes())
    except ImportError:
        pass
    try:
        import zstandard

        with path.open("rb") as file:
            return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    except ImportError:
        return subprocess.run(["zstd", "-dcq", str(path)], check=True, stdout=subprocess.PIPE).stdout


def sources(store):
    """Yields the name and the records of packs and segments, the oldest first."""
    packs, segments = {}, {}
    for path in (store / "log").glob("*.seg"):  # before the packs: see docs/storage.md
        if re.fullmatch(r"\d{8,}", path.stem):
            segments[int(path.stem)] = path
    for path in (store / "packs").glob("*.pack"):
        if match := re.fullmatch(r"(\d{8,})-([1-9]\d*)", path.stem):
            packs[int(match[1]), int(match[2])] = path
    replaced = max((number for number, _ in packs), default=-1)
    for name in sorted(packs):
        yield packs[name].name, decompress(packs[name])
    for number in sorted(segments):
        if number > replaced:
            yield segments[number].name, segments[number].read_bytes()


def newest(store, group):
    """Returns the records of a group that count, by hash: place, kind and body."""
    found = {}
    for name, data in sources(store):
        for at, kind, number, body in scan(data):
            if GROUPS[kind] != group:
                continue
            if kind == b"n" and number in found and not whole(body):
                continue  # torn by a power failure: the older one counts
            found[number] = (f"{name}:{at}", kind, body)
    return {number: record for number, record in sorted(found.items()) if record[1] not in ABSENT}


def whole(body):
    try:
        return cbor(body, 0)[1] == len(body)
    except (ValueError, IndexError, struct.error, UnicodeDecodeError):
        return False


def cbor(data, at):
    """Decodes one value of canonical CBOR; returns it and the offset behind it."""
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    if info < 24:
        arg = info
    elif info < 28:
        size = 1 << info - 24
        arg, at = int.from_bytes(data[at : at + size], "big"), at + size
    else:
        raise ValueError("not canonical CBOR")
    if major == 0:
        return arg, at
    if major == 1:
        return -1 - arg, at
    if major == 3:
        if at + arg > len(data):
            raise ValueError("the text is cut")
        return data[at : at + arg].decode(), at + arg
    if major == 4:
        items = []
        for _ in range(arg):
            item, at = cbor(data, at)
            items.append(item)
        return items, at
    if major == 5:
        fields = {}
        for _ in range(arg):
            key, at = cbor(data, at)
            fields[key], at = cbor(data, at)
        return fields, at
    if major == 7 and info in (20, 21, 22):
        return {20: False, 21: True, 22: None}[info], at
    if major == 7 and info == 27:
        return struct.unpack(">d", data[at - 8 : at])[0], at
    raise ValueError("not canonical CBOR")


def main(args):
    if len(args) < 2 or args[1] not in ("list", "get", "seals", "homes") or (args[1] == "get") != (len(args) == 3):
        sys.exit(__doc__)
    store, command = pathlib.Path(args[0]), args[1]
    if not (store / "format.json").exists():
        sys.exit(f"{store} has no format.json")
    form = json.loads((store / "format.json").read_text("utf-8-sig"))
    if form.get("version") != 2 or set(form) != {"version", "hash"}:
        sys.exit(f"{store} has another format: {form}")
    if command == "list":
        for number, (place, kind, _) in newest(store, "content").items():
            print(hash_text(number), "node" if kind == b"n" else "tombstone", place)
    elif command == "get":
        wanted = [record for number, record in newest(store, "content").items() if hash_text(number) == args[2]]
        if not wanted or not whole(wanted[0][2]):
            sys.exit(f"{args[2]} is damaged" if wanted else f"{args[2]} isn't in the store")
        print(json.dumps(cbor(wanted[0][2], 0)[0], ensure_ascii=False))
    elif command == "seals":
        for number, (place, _, body) in newest(store, "seal").items():
            if len(body) != 36 or crc32c(body[:32]) != int.from_bytes(body[32:], "big"):
                sys.exit(f"the seal at {place} is damaged")
            print(hash_text(number), body[:32].hex())
    else:
        for _, _, body in newest(store, "home").values():
            print(body.decode().splitlines()[0])


if __name__ == "__main__":
    main(sys.argv[1:])
