"""Mutations: a sound file in, a damaged or malicious one out; blunt on bytes, sharp on what the bytes mean."""

import io
import json
import random
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import torch

from bangs.runs.checkpoint_file import _END, _START, _ZEROS, decode, encode
from bangs.utils.files import digest

Draw = random.Random
Mutation = Callable[[bytes, Draw], bytes]

NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, -(2**63), 10**12)
WORDS = (
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "-1",
    "0",
    "1e-400",
    "007",
    "0x10",
    "1_000",
    "9" * 400,
    "999999999999",
    "true",
    "null",
    "none",
    '"',
    "'",
    '""',
    ",",
    ";",
    "\t",
    "\n",
    "\r\n",
    "\x00",
    "\ufeff",
    "\u202e",
    "é",
    "𝟙",
    "∞",
    "=1+1",
    "=cmd|' /C calc'!A0",
    "@SUM(A1)",
    "<script>alert(1)</script>",
    "]]>",
    "{{7*7}}",
    "%s%n",
    "../../etc/passwd",
    "/etc/passwd",
    "/etc/passwd.npz",
    "$(touch owned)",
    "a" * 5000,
    "[" * 300,
    '{"a":' * 200,
    "cos\nsystem\n(S'touch owned'\ntR.",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    -(2**63),
    10**12,
    10**30,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "bangs",
    "raw",
    "../../etc/passwd",
    "<script>",
    "9" * 400,
    [],
    [[]],
    [0],
    [-1, 10**12],
    list(range(50)),
    [None],
    ["a", 1],
    {},
    {"": 0},
    {"part": "Trainer", "settings": {}},
    {"own": "x"},
)


def several(*choices: Mutation, most: int = 3) -> Mutation:
    """One to `most` of the mutations, one after the other."""

    def mutate(body: bytes, draw: Draw) -> bytes:
        for _ in range(draw.randint(1, most)):
            body = draw.choice(choices)(body, draw)
        return body

    return mutate


# ── any bytes ────────────────────────────────────────────────────────────────


def flip(body: bytes, draw: Draw) -> bytes:
    """A few bits turned."""
    out = bytearray(body)
    for _ in range(draw.choice((1, 1, 2, 8))):
        if out:
            out[draw.randrange(len(out))] ^= 1 << draw.randrange(8)
    return bytes(out)


def overwrite(body: bytes, draw: Draw) -> bytes:
    """A number of 1, 2, 4 or 8 bytes put where others stood."""
    kind = draw.choice(("<b", "<h", ">h", "<i", ">i", "<q", ">q"))
    size = struct.calcsize(kind)
    number = draw.choice(NUMBERS) % 2 ** (8 * size)
    place = draw.randrange(max(1, len(body) - size))
    return body[:place] + struct.pack(kind.upper(), number) + body[place + size :]


def cut(body: bytes, draw: Draw) -> bytes:
    """The end, or a piece from the middle, taken away."""
    start = draw.randrange(len(body) + 1)
    length = draw.choice((len(body), 1, draw.randrange(1, 65)))
    return body[:start] + body[start + length :]


def double(body: bytes, draw: Draw) -> bytes:
    """A piece repeated."""
    start, length = draw.randrange(len(body) + 1), draw.randrange(1, 200)
    return body[: start + length] + body[start : start + length] * draw.choice((1, 1, 3, 40)) + body[start + length :]


def insert(body: bytes, draw: Draw) -> bytes:
    """A word, or noise, put in."""
    place = draw.randrange(len(body) + 1)
    new = draw.choice((draw.choice(WORDS).encode("utf-8", "replace"), draw.randbytes(draw.randrange(1, 20))))
    return body[:place] + new + body[place:]


def blank(body: bytes, draw: Draw) -> bytes:
    """A block of zeros, as a power cut leaves it, or of ones."""
    start, length = draw.randrange(len(body) + 1), draw.randrange(1, 600)
    fill = draw.choice((b"\0", b"\xff"))
    return body[:start] + fill * len(body[start : start + length]) + body[start + length :]


def swap(body: bytes, draw: Draw) -> bytes:
    """Two halves in the wrong order."""
    place = draw.randrange(len(body) + 1)
    return body[place:] + body[:place]


def noise(body: bytes, draw: Draw) -> bytes:
    """Something else altogether."""
    return draw.choice(
        (b"", b"\0" * 100, draw.randbytes(300), b"PK\x03\x04", b"PAR1" * 4, b"\x80\x04.", b"{}", b"[]\n")
    )


BYTES = several(flip, overwrite, cut, double, insert, blank, swap)
ANYTHING = several(BYTES, BYTES, BYTES, BYTES, noise, most=1)


# ── text ─────────────────────────────────────────────────────────────────────


def token(body: bytes, draw: Draw) -> bytes:
    """A word or number replaced by a nasty one, or by another of the file."""
    found = list(re.finditer(rb'[^\s,;="\[\]{}]+', body))
    if not found:
        return body
    match, other = draw.choice(found), draw.choice(found)
    new = draw.choice(
        (draw.choice(WORDS).encode("utf-8", "replace"), other.group(), str(draw.choice(NUMBERS)).encode())
    )
    return body[: match.start()] + new + body[match.end() :]


def line(body: bytes, draw: Draw) -> bytes:
    """A line taken out, repeated, moved or made of a nasty word."""
    lines = body.splitlines(keepends=True) or [b""]
    place = draw.randrange(len(lines))
    kind = draw.randrange(5)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(place, lines[place])
    elif kind == 2:
        lines.insert(draw.randrange(len(lines) + 1), lines.pop(place))
    elif kind == 3:
        lines.insert(place, draw.choice(WORDS).encode("utf-8", "replace") + b"\n")
    else:
        lines[place] = lines[place] * draw.choice((2, 50))
    return b"".join(lines)


def spelling(body: bytes, draw: Draw) -> bytes:
    """The same text in other manners: another separator, line end, encoding or mark."""
    kind = draw.randrange(7)
    if kind == 0:
        return body.replace(b",", draw.choice((b";", b"\t", b"|", b" ", b",,")))
    if kind == 1:
        return body.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n")))
    if kind == 2:
        return b"\xef\xbb\xbf" + body
    if kind == 3:
        return body.decode("utf-8", "replace").encode(draw.choice(("utf-16", "utf-32", "latin-1")), "replace")
    if kind == 4:
        return body.rstrip(b"\n")
    return body.upper() if kind == 5 else b'"' + body


TEXT = several(token, token, token, line, line, spelling, BYTES)


# ── JSON ─────────────────────────────────────────────────────────────────────


def value(whole: Any, draw: Draw) -> Any:
    """One place of a JSON value changed: another value, a missing or a new key, a shorter or longer list."""
    if draw.random() < 0.02:
        return draw.choice(VALUES)
    places = list(_places(whole))
    if not places:
        return draw.choice(VALUES)
    parent, key = draw.choice(places)
    kind = draw.randrange(6)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[draw.choice(("", "extra", "part", "__class__", "a" * 300))] = draw.choice(VALUES)
    elif kind == 1:
        parent.append(draw.choice(VALUES))
    elif kind == 2:
        other, name = draw.choice(places)
        parent[key] = json.loads(json.dumps(other[name])) if name in _keys(other) else None
    elif kind == 3:
        for _ in range(draw.choice((1, 30, 100))):
            parent[key] = [parent[key]]
    else:
        parent[key] = draw.choice(VALUES)
    return whole


def _keys(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, dict) else range(len(value))


def _places(whole: Any) -> Any:
    if isinstance(whole, dict | list):
        for key in _keys(whole):
            yield whole, key
            yield from _places(whole[key])


def json_value(body: bytes, draw: Draw) -> bytes:
    """A JSON file with another value somewhere."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return BYTES(body, draw)
    return json.dumps(value(content, draw)).encode()


def json_line(body: bytes, draw: Draw) -> bytes:
    """One JSON line with another value somewhere."""
    lines = body.splitlines(keepends=True)
    if not lines:
        return body
    place = draw.randrange(len(lines))
    lines[place] = json_value(lines[place], draw) + b"\n"
    return b"".join(lines)


def sealed(body: bytes, draw: Draw) -> bytes:
    """A sealed file with another content and a checksum that agrees with it."""
    try:
        whole = json.loads(body)
        name = next(key for key in whole if key not in ("format", "sha256"))
        whole[name] = value(whole[name], draw)
        return json.dumps({**whole, "sha256": digest(whole[name])}).encode()
    except (ValueError, TypeError, StopIteration, AttributeError, RecursionError):
        return BYTES(body, draw)


JSON = several(json_value, json_value, TEXT, most=2)
JSON_LINES = several(json_line, json_line, TEXT, most=2)
SEALED = several(sealed, sealed, sealed, json_value, TEXT, most=2)


# ── archives of arrays ───────────────────────────────────────────────────────


def array(body: bytes, draw: Draw) -> bytes:
    """An .npy file of another type, shape or content."""
    try:
        there = np.load(io.BytesIO(body), allow_pickle=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = draw.choice(_ARRAYS)(there, draw)
        out = io.BytesIO()
        np.save(out, made, allow_pickle=True)
    except Exception:  # it was damaged before
        return BYTES(body, draw)
    return out.getvalue()


def header(body: bytes, draw: Draw) -> bytes:
    """An .npy file whose header claims something else."""
    if len(body) < 12:
        return body
    length = int.from_bytes(body[8:10], "little")
    text = body[10 : 10 + length].decode("latin-1")
    claims = ("(1000000000000,)", "(-1,)", "(2, 99999999999)", "()", "(0, 0)", "(True,)", "(1.5,)", "(" * 50, "None")
    kind = draw.randrange(4)
    if kind == 0:
        text = re.sub(r"\([^)]*\)", lambda _: draw.choice(claims), text, count=1)
    elif kind == 1:
        text = re.sub(
            r"'[<>|=]?\w\d+'", lambda _: repr(draw.choice(("|O", "<c16", "|V9999999", "<U7", "x", "<i3"))), text
        )
    elif kind == 2:
        text = text.replace("False", draw.choice(("True", "None", "__import__('os').getcwd()", "[]")))
    else:
        text = TEXT(text.encode("latin-1"), draw).decode("latin-1")
    new = text.encode("latin-1")
    return body[:8] + min(len(new), 65535).to_bytes(2, "little") + new + body[10 + length :]


def _put(there: Any, draw: Draw) -> Any:
    """One number replaced."""
    made = there.copy()
    if made.size:
        number = draw.choice((*NUMBERS, float("nan"), float("inf"), 1e300))
        try:
            made.flat[draw.randrange(made.size)] = number
        except (OverflowError, ValueError):
            made.flat[0] = 0
    return made


_ARRAYS: tuple[Callable[[Any, Draw], Any], ...] = (
    _put,
    _put,
    _put,
    lambda a, draw: a[: draw.randrange(len(a) + 1)] if a.ndim else a,
    lambda a, draw: a.astype(draw.choice(("f2", "f8", "i1", "u1", "?", "c8", ">i4", "u8", "S4", "U4", "O", "M8[s]"))),
    lambda a, draw: a.T if a.ndim > 1 else a[None],
    lambda a, draw: np.asfortranarray(a),
    lambda a, draw: a.reshape(-1) if draw.random() < 0.5 else a[..., None],
    lambda a, draw: np.concatenate([a, a]) if a.ndim else a,
    lambda a, draw: np.zeros(draw.choice(((), (0,), (0, 5), (5, 0), (1, 1), (2, 0), (3, 3, 3))), a.dtype),
    lambda a, draw: np.full(a.shape, draw.choice((0, -1, 3, 1e9)), dtype=np.float64),
    lambda a, draw: np.array([("x", 1)], dtype=[("a", "U4"), ("b", "i4")]),
)


def member(body: bytes, draw: Draw) -> bytes:
    """An archive packed anew with a member changed, renamed, dropped, doubled or claimed larger; checksums agree."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except Exception:
        return BYTES(body, draw)
    if not members:
        return body
    place = draw.randrange(len(members))
    name, content = members[place]
    kind = draw.randrange(8)
    if kind < 4:
        members[place] = name, draw.choice((array, array, header, BYTES))(content, draw)
    elif kind == 4:
        del members[place]
    elif kind == 5:
        odd = (
            "../escaped.npy",
            "/etc/escaped.npy",
            "",
            "x.npy",
            "y",
            "a/../../b.npy",
            "C:\\x.npy",
            "\x00.npy",
            name + "/",
        )
        members[place] = draw.choice(odd), content
    elif kind == 6:
        members.append((name, array(content, draw)))
    else:
        members.append((draw.choice(("x.npy", "../x.npy", "train_mask.npy", "x_shape.npy")), draw.choice(members)[1]))
    return _packed(members, draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def _packed(members: list[tuple[str, bytes]], method: int) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, content in members:
                archive.writestr(zipfile.ZipInfo(name or "_"), content, method)
    return out.getvalue()


ARRAY = several(array, array, header, BYTES, most=2)
ARCHIVE = several(member, member, member, BYTES, most=2)


# ── checkpoints ──────────────────────────────────────────────────────────────


def resealed(body: bytes, draw: Draw) -> bytes:
    """A checkpoint with other facts, another header or other numbers, and a checksum that agrees with them."""
    try:
        size = int.from_bytes(body[:8], "little")
        head = json.loads(body[8 : 8 + size])
        facts = json.loads(head["__metadata__"]["bangs"])
        data = body[8 + size :]
        kind = draw.randrange(4)
        if kind < 2:
            facts = value({key: facts[key] for key in facts if key != "sha256"}, draw)
        elif kind == 2:
            tensors = value({key: head[key] for key in head if key != "__metadata__"}, draw)
            head = {"__metadata__": head["__metadata__"], **tensors}
        else:
            data = BYTES(data, draw)
        entry = json.dumps({"sha256": _ZEROS.decode(), **facts}, separators=(",", ":"))
        spelled = json.dumps({**head, "__metadata__": {"bangs": entry}}, separators=(",", ":")).encode()
        spelled += b" " * (-len(spelled) % 8)
        made = bytearray(len(spelled).to_bytes(8, "little") + spelled + data)
        made[_START:_END] = sha256(made).hexdigest().encode()
        return bytes(made)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return BYTES(body, draw)


def tensor(body: bytes, draw: Draw) -> bytes:
    """A checkpoint with a tensor of another type, shape or content, and a checksum that agrees with it."""
    try:
        size = int.from_bytes(body[:8], "little")
        owner = json.loads(json.loads(body[8 : 8 + size])["__metadata__"]["bangs"])["config"]
        held = decode(body, owner)
        name = draw.choice(sorted(held.tensors))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = draw.choice(_ARRAYS)(held.tensors[name].numpy(), draw)
        held.tensors[name] = torch.from_numpy(np.ascontiguousarray(made))
        return b"".join(encode(held, owner))
    except Exception:  # it was damaged before, or is no array that torch knows
        return BYTES(body, draw)


CHECKPOINT = several(resealed, resealed, tensor, tensor, BYTES, most=1)
