"""Binaries: damage that knows how Parquet files and pickles are made."""

import io
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz import mutations as m

_KINDS: tuple[Any, ...] = (
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("ns"),
    pa.time64("us"),
    pa.duration("s"),
    pa.decimal128(20, 3),
    pa.binary(),
    pa.large_string(),
    pa.list_(pa.int64()),
    pa.struct([("a", pa.int64())]),
    pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int8(), pa.string()),
    pa.null(),
)


def parquet(body: bytes, draw: m.Draw) -> bytes:
    """A Parquet file with a column of another type, of nulls, of another name or length; or damaged bytes."""
    try:
        table = _other(pq.read_table(io.BytesIO(body)), draw) if draw.random() < 0.7 else None
        out = io.BytesIO()
        pack = draw.choice(("none", "snappy", "zstd"))
        pq.write_table(table, out, use_dictionary=draw.random() < 0.5, compression=pack)
    except Exception:  # it was damaged before, or there is no such table
        return m.BYTES(body, draw)
    return out.getvalue()


def _other(table: Any, draw: m.Draw) -> Any:
    name = draw.choice(table.column_names)
    kind, place = draw.randrange(5), table.column_names.index(name)
    if kind == 0:
        strange = draw.choice(_KINDS)
        return table.set_column(place, pa.field(name, strange), pa.nulls(len(table), strange))
    if kind == 1:
        return table.rename_columns([draw.choice((own, "", "id", draw.choice(m.WORDS))) for own in table.column_names])
    if kind == 2:
        words = [draw.choice((*m.WORDS, "n1", "n2", None)) for _ in range(len(table))]
        return table.set_column(place, name, pa.array(words, pa.string()))
    if kind == 3:
        return table.slice(draw.randrange(len(table) + 1), draw.choice((0, 1, 5, 100)))
    return draw.choice((table.drop_columns([name]), table.append_column(name, table.column(place))))


_HARMFUL = (
    b"cposix\nsystem\n(S'touch owned'\ntR.",
    b'cbuiltins\neval\n(S\'open("owned", "w")\'\ntR.',
    b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0btouch owned\x85R.",
    b"cnumpy\nload\n(S'owned'\ntR.",
    b"(S'owned'\niposix\nmkdir\n.",
    b"\x80\x02}(K\x00]q\x00(K\x01e" + b"K\x01h\x00" * 200 + b"u.",
    b"\x80\x02Nr\xff\xff\xff\x7f.",
    b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0fx.",
    b"\x80\x02" + b"]" * 2000 + b"." + b"a" * 1999,
    b"\x80\x02\x8b\xff\xff\xff\x7f1.",
)


def pickled(body: bytes, draw: m.Draw) -> bytes:
    """A pickle with damaged bytes, a harmful one, or one with a harmful piece inside."""
    kind = draw.randrange(8)
    if kind == 0:
        return m.BYTES(draw.choice(_HARMFUL), draw) if draw.random() < 0.3 else draw.choice(_HARMFUL)
    if kind == 1:
        place = draw.randrange(len(body))
        return body[:place] + draw.choice(_HARMFUL)[:-1] + body[place:]
    if kind == 2:
        odd: Any = draw.choice((*m.VALUES, {0: 10**30}, {10**30: [0]}, {0: "abc"}, {0: {1: 2}}, np.float32(1), b"x"))
        return pickle.dumps(odd, protocol=draw.choice((0, 3, 4)))
    if kind == 3:
        shape: Any = draw.choice(((), (0, 3), (14, 3), (14, 0), (10, 2), (1,)))
        return pickle.dumps(np.zeros(shape, draw.choice(("f8", "i1", "c8", "O", "U3"))), protocol=4)
    return m.BYTES(body, draw)
