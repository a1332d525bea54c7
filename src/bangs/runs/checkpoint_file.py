"""A checkpoint: the state of a run after a round, in one safetensors file with a checksum.

The metadata have one entry, `bangs`: a JSON object with the round, its facts, the hash of the configuration, and the
sha256 of the whole file, computed with zeros in place of the 64 digits of the checksum. So a round is written by one
rename, one pass over the bytes detects any change, and every safetensors reader can open the file.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from bangs.errors import BangsError, InvalidInput
from bangs.utils.files import json_value, parse

FORMAT = 1
MAX_BYTES = 1 << 36
MAX_FACTS_BYTES = 32 << 20  # safetensors allows a header of 100 MB
_ZEROS = b"0" * 64
_METADATA_START = b'{"__metadata__":{"bangs":"{\\"sha256\\":\\"'
FILE_START = re.compile(b".{8}" + re.escape(_METADATA_START), re.DOTALL)  # of every such file
_START = 8 + len(_METADATA_START)  # the header's length takes 8 bytes
_END = _START + 64


class Damaged(BangsError):
    """A checkpoint was changed after it was written, or belongs to another run."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run at the end of a round."""

    round: int
    tensors: dict[str, Tensor]  # on the CPU
    facts: dict[str, Any]


def encode(checkpoint: Checkpoint, config: str) -> list[memoryview]:
    """The bytes of a checkpoint for a run with this configuration hash, in pieces to avoid a copy for the checksum."""
    tensors = _separate_storages(checkpoint.tensors)
    facts = json_value(checkpoint.facts, "facts")
    entry = {"sha256": _ZEROS.decode(), "format": FORMAT, "config": config, "round": checkpoint.round, "facts": facts}
    entry_text = json.dumps(entry, separators=(",", ":"))  # keeps nan and inf, so that facts are read back unchanged
    if len(entry_text) > MAX_FACTS_BYTES:
        raise InvalidInput(
            f"the facts of a checkpoint must take at most {MAX_FACTS_BYTES:,} bytes, got {len(entry_text):,}"
        )
    try:
        body: bytes = save(tensors, metadata={"bangs": entry_text})
    except Exception as error:
        raise InvalidInput(f"these tensors cannot be saved: {error}") from error
    if len(body) > MAX_BYTES:
        raise InvalidInput(f"a checkpoint must take at most {MAX_BYTES:,} bytes, this one takes {len(body):,}")
    if body[8:_END] != _METADATA_START + _ZEROS:
        raise BangsError("this safetensors library writes metadata in a form bangs does not know; install 0.5 to 0.8")
    checksum = sha256(body).hexdigest().encode()
    return [memoryview(body)[:_START], memoryview(checksum), memoryview(body)[_END:]]


def decode(body: bytes, config: str) -> Checkpoint:
    """Read a checkpoint; raises `Damaged` if a bit has changed or another run wrote it."""
    if body[8:_START] != _METADATA_START:
        raise Damaged("it does not begin as a checkpoint does")
    checksum = sha256(body[:_START])
    checksum.update(_ZEROS)
    checksum.update(memoryview(body)[_END:])
    if checksum.hexdigest().encode() != body[_START:_END]:
        raise Damaged("its checksum does not match: it was cut short or changed after it was written")
    try:
        size = int.from_bytes(body[:8], "little")
        entry = parse(json.loads(body[8 : 8 + size])["__metadata__"]["bangs"], "the checkpoint's facts")
        tensors = load(body)
        version, config_of_file, round, facts = entry["format"], entry["config"], entry["round"], entry["facts"]
    except Exception as error:  # the checksum is right, so bangs did not write this content
        raise Damaged(f"it is no checkpoint: {str(error)[:200]}") from error
    if version != FORMAT:
        raise Damaged(f"its format is {version!r}, this version of bangs reads {FORMAT}")
    if config_of_file != config:
        raise Damaged("it belongs to a run of another configuration")
    if type(round) is not int or not isinstance(facts, dict):
        raise Damaged("its round or facts are missing")
    return Checkpoint(round, tensors, facts)


def _separate_storages(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU, each with its own storage, as safetensors needs them; copied only if necessary."""
    separate, pointers = {}, set()
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or tensor.layout != torch.strided:
            raise InvalidInput(f"tensors['{name}'] must be a dense tensor; save the parts of a sparse one")
        storage = tensor.untyped_storage()
        is_separate = storage.data_ptr() not in pointers and storage.nbytes() == tensor.nbytes
        pointers.add(storage.data_ptr())
        if is_separate and tensor.device.type == "cpu" and tensor.is_contiguous():
            separate[name] = tensor.detach()
        else:
            separate[name] = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach())
    return separate
