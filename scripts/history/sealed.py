"""A point of a history as `syscost history` writes it: a line of JSON with a CRC-32 over what stands before it."""
import json, zlib


def sealed(point):
    head = '{"sealed":true,' + json.dumps(point, separators=(",", ":"))[1:-1]
    return f'{head},"seal":"{zlib.crc32(head.encode()):08x}"}}\n'
