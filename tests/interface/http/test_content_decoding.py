"""Packed bodies: unpacked piece by piece, however they were cut, and never more than a bounded piece at a time."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from SimpleLLMFunc.interface.http.content_decoding import Unpacker, unpacker_for


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS = {
    "gzip": ("gzip", gzip.compress),
    "gzip twice": ("gzip", lambda data: gzip.compress(data[:3]) + gzip.compress(data[3:])),
    "deflate": ("deflate", zlib.compress),
    "deflate without its envelope": ("deflate", raw_deflate),
}


def unpacked(unpacker, pieces):
    found = []
    for piece in pieces:
        found.append(unpacker.feed(piece))
        while unpacker.has_more:
            found.append(unpacker.feed(b""))
    return found


@given(st.sampled_from(sorted(PACKERS)), st.binary(max_size=300), st.lists(st.integers(0, 400), max_size=8))
def test_a_body_is_the_same_however_it_is_cut(name, data, cuts):
    coding, pack = PACKERS[name]
    packed = pack(data)
    at = sorted({0, len(packed), *(cut for cut in cuts if cut < len(packed))})
    unpacker = Unpacker(coding)
    assert b"".join(unpacked(unpacker, [packed[begin:to] for begin, to in zip(at, at[1:], strict=False)])) == data
    assert not unpacker.is_amid


@pytest.mark.parametrize("size", [0, 1, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, 20 * 1024 * 1024])
def test_a_small_body_that_holds_much_comes_in_pieces(size):
    unpacker, packed = Unpacker("gzip"), gzip.compress(bytes(size))
    pieces = unpacked(unpacker, [packed[:-9], packed[-9:]])  # all that has come may be taken, and not given out
    assert max(map(len, pieces)) <= 1024 * 1024
    assert sum(map(len, pieces)) == size
    assert not unpacker.is_amid


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_is_not_packed_is_refused(coding):
    with pytest.raises(ValueError, match=f"packed with {coding}"):
        Unpacker(coding).feed(b"this is plain text, whatever its head says")


def test_a_body_that_is_cut_off_is_known():
    unpacker = Unpacker("gzip")
    assert unpacker.feed(gzip.compress(b"hello")[:-4])
    assert unpacker.is_amid


def test_what_is_no_coding_of_ours_is_left_as_it_is():
    assert all(map(unpacker_for, ["gzip", "GZIP", " x-gzip ", "deflate"]))
    assert not any(map(unpacker_for, ["", "identity", "utf-8", "br"]))
