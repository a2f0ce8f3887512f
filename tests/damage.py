"""Damage done to files: flipped bits, cut ends, lost, zeroed and exchanged blocks. Seeded."""

from __future__ import annotations

import random

BLOCK = 4096


def flip_bit(data: bytes, chance: random.Random) -> bytes:
    """Flip one bit."""
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def cut_off(data: bytes, chance: random.Random) -> bytes:
    """Lose the end."""
    return data[: chance.randrange(1, len(data))]


def zero_block(data: bytes, chance: random.Random) -> bytes:
    """Lose what is in a block."""
    at = chance.randrange(0, len(data), BLOCK)
    return data[:at] + bytes(len(data[at : at + BLOCK])) + data[at + BLOCK :]


def lose_block(data: bytes, chance: random.Random) -> bytes:
    """Lose a block: what comes after it moves."""
    at = chance.randrange(0, len(data), BLOCK)
    return data[:at] + data[at + BLOCK :] or b"\0"


def exchange_blocks(data: bytes, chance: random.Random) -> bytes:
    """Exchange two blocks."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    i, j = (chance.randrange(len(blocks)) for _ in range(2))
    blocks[i], blocks[j] = blocks[j], blocks[i]
    return b"".join(blocks)


def append_bytes(data: bytes, chance: random.Random) -> bytes:
    """Have something after the end."""
    return data + chance.randbytes(chance.choice([1, 100, BLOCK, 3 * BLOCK]))


def overwrite(data: bytes, chance: random.Random) -> bytes:
    """Have something else in a place."""
    at, n = chance.randrange(len(data)), chance.choice([1, 2, 4, 8, 64, 1000])
    return (data[:at] + chance.randbytes(n) + data[at + n :])[: len(data)]


KINDS = (flip_bit, cut_off, zero_block, lose_block, exchange_blocks, append_bytes, overwrite)
