"""A checkpoint comes back bit by bit, or is known to be damaged."""

import json
import math
from hashlib import sha256
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import Tensor

from bangs.errors import InvalidInput
from bangs.runs.checkpoint_file import MAX_FACTS_BYTES, Checkpoint, Damaged, decode, encode

SMALL = b"".join(encode(Checkpoint(3, {"w": torch.arange(6.0), "t": torch.tensor([-1])}, {"seen": [1, 2]}), "c" * 64))


def encoded_and_decoded(tensors: dict[str, Tensor], facts: dict[str, Any] | None = None) -> Checkpoint:
    return decode(b"".join(encode(Checkpoint(1, tensors, facts or {}), "c")), "c")


def sealed(body: bytes) -> bytes:
    """The same bytes with a right checksum, as a hostile writer would make them."""
    start = body.index(b"0" * 64)
    return body[:start] + sha256(body).hexdigest().encode() + body[start + 64 :]


def metadata_of(entry: dict[str, Any]) -> str:
    return json.dumps({"sha256": "0" * 64} | entry, separators=(",", ":"))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8]
)
def test_tensors_come_back_bit_by_bit(dtype: torch.dtype) -> None:
    tensor = torch.randint(0, 200, (2, 3, 5), generator=torch.Generator().manual_seed(1)).to(dtype)
    back = encoded_and_decoded({"a": tensor}).tensors["a"]
    assert back.dtype == dtype
    assert torch.equal(back, tensor)


def test_nan_keeps_its_bits() -> None:
    bits = torch.tensor([0x7FC00001, -0x80000000, 0x7F800000], dtype=torch.int32)
    back = encoded_and_decoded({"a": bits.view(torch.float32)}).tensors["a"]
    assert torch.equal(back.view(torch.int32), bits)


def test_views_shared_empty_and_scalar_tensors_are_kept_and_can_be_written_to() -> None:
    base = torch.arange(12.0).reshape(3, 4).requires_grad_()
    tensors = {
        "whole": base,
        "again": base,
        "transposed": base.T,
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "part": torch.arange(9.0)[2:5],
        "row": base[1],
        "expanded": base[:, :1].expand(3, 7),
        "none": torch.empty(0, 5, dtype=torch.bool),
        "one": torch.tensor(7),
    }
    back = encoded_and_decoded(tensors).tensors
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(back[name], tensor), name
    back["again"].zero_()
    assert torch.equal(back["whole"], base)


def test_facts_come_back_as_given_numbers_without_json_included() -> None:
    facts = {"loss": [0.1, 1e-300, math.inf, -math.inf], "big": 2**62 + 1, "ö\ud800": {"deep": [None, True, "\0"]}}
    back = encoded_and_decoded({}, facts).facts
    assert back == facts
    assert math.isnan(encoded_and_decoded({}, {"x": math.nan}).facts["x"])
    assert encoded_and_decoded({}, {"pair": (1, 2)}).facts == {"pair": [1, 2]}


def test_the_same_state_gives_the_same_bytes() -> None:
    state = Checkpoint(3, {"w": torch.arange(6.0), "t": torch.tensor([-1])}, {"seen": [1, 2]})
    assert b"".join(encode(state, "c" * 64)) == SMALL


def test_any_safetensors_reader_opens_it() -> None:
    assert torch.equal(load(SMALL)["w"], torch.arange(6.0))


def test_a_flip_of_any_bit_is_noticed() -> None:
    for position in range(len(SMALL)):
        for bit in range(8):
            flipped = bytearray(SMALL)
            flipped[position] ^= 1 << bit
            with pytest.raises(Damaged):
                decode(bytes(flipped), "c" * 64)


def test_a_cut_or_a_longer_tail_is_noticed() -> None:
    for length in range(len(SMALL)):
        with pytest.raises(Damaged):
            decode(SMALL[:length], "c" * 64)
    with pytest.raises(Damaged):
        decode(SMALL + b"\0", "c" * 64)


@given(st.binary(max_size=300), st.integers(0, len(SMALL)), st.integers(0, len(SMALL)))
@settings(max_examples=200, deadline=None)
def test_spliced_bytes_are_noticed(middle: bytes, start: int, end: int) -> None:
    body = SMALL[:start] + middle + SMALL[end:]
    if body == SMALL:
        return
    with pytest.raises(Damaged):
        decode(body, "c" * 64)


def test_a_checkpoint_of_another_configuration_is_not_ours() -> None:
    with pytest.raises(Damaged, match="another configuration"):
        decode(SMALL, "d" * 64)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"format": 2, "config": "c", "round": 1, "facts": {}}, "its format is 2, this version of bangs reads 1"),
        ({"format": 1, "config": "c", "round": "../1", "facts": {}}, "round or facts"),
        ({"format": 1, "config": "c", "round": 1, "facts": []}, "round or facts"),
        ({"format": 1, "config": "c", "round": 1}, "no checkpoint"),
        ({"format": 1, "config": "c", "round": True, "facts": {}}, "round or facts"),
    ],
)
def test_a_false_file_with_a_right_checksum_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(Damaged, match=message):
        decode(sealed(save({}, metadata={"bangs": metadata_of(entry)})), "c")


def test_a_header_that_claims_huge_tensors_allocates_nothing() -> None:
    header = json.dumps({"w": {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}})
    spelled = json.dumps(metadata_of({"format": 1, "config": "c", "round": 1, "facts": {}}))
    text = f'{{"__metadata__":{{"bangs":{spelled}}},{header[1:]}'.encode()
    with pytest.raises(Damaged, match="no checkpoint"):
        decode(sealed(len(text).to_bytes(8, "little") + text), "c")


def test_what_cannot_be_saved_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"tensors\['adjacency'\] must be a dense tensor"):
        encode(Checkpoint(1, {"adjacency": torch.eye(2).to_sparse()}, {}), "c")
    with pytest.raises(InvalidInput, match=r"facts\.scores must be made of .* got Tensor"):
        encode(Checkpoint(1, {}, {"scores": torch.zeros(2)}), "c")
    with pytest.raises(InvalidInput, match="at most"):
        encode(Checkpoint(1, {}, {"text": "x" * MAX_FACTS_BYTES}), "c")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tensors_of_a_gpu_come_back_on_the_cpu() -> None:
    tensor = torch.randn(5, device="cuda")
    back = encoded_and_decoded({"a": tensor}).tensors["a"]
    assert back.device.type == "cpu"
    assert torch.equal(back, tensor.cpu())
