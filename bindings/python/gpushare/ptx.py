"""Kernels of which only the PTX is known: what can be made of a text, and the text that is made.

    code = gpushare.ptx.Ptx(compiled.asm['ptx'], 'softmax_kernel')
    print(code.refusal(gpushare.Form.WORKERS))        # None, or a Refusal with its line and its reason
    kernel = runtime.register_kernel('softmax', ptx=code, threads_per_block=128)

No GPU is needed but to run a kernel. docs/ptx-kernels.md says what is refused and where assembled code is kept.
"""

from __future__ import annotations

import ctypes
import dataclasses

from gpushare import abi
from gpushare._library import library
from gpushare._structs import init, read_text, text_of
from gpushare.enums import Form, PtxFormBit

__all__ = ['Ptx', 'Refusal', 'entries']

ALL_FORMS = PtxFormBit.WORKERS | PtxFormBit.SLICE


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Why a kernel has no such form: the line of its text, from 1 (0: the text as a whole), and a sentence."""

    line: int
    reason: str


class Ptx:
    """One kernel of a `text`. Without `entry` the text has one kernel. `forms` are those that a registration makes.
    With GRAPH_NODES as well, long nodes of later graphs that launch its original_function run as its workers.

    `struct` is the C struct. It keeps the text.
    """

    def __init__(self, text: str | bytes, entry: str | None = None, forms: PtxFormBit = ALL_FORMS) -> None:
        if not isinstance(text, str | bytes):
            raise TypeError(f'text is {text!r}, and it must be a string or bytes.')
        self.text = text.encode() if isinstance(text, str) else text
        self.entry = entry
        self.struct = init(abi.gpushare_ptx_code, {'forms': forms})
        self.struct.text = self.text
        self.struct.text_bytes = len(self.text)
        if entry is not None:
            self.struct.entry = text_of('entry', entry)

    def refusal(self, form: Form) -> Refusal | None:
        """Why the kernel has no form WORKERS or SLICE; None: it has it."""
        if not isinstance(form, Form):
            raise TypeError(f'form is {form!r}, and it must be a Form.')
        line = ctypes.c_uint32()
        reason = read_text(
            lambda *buffer: library().gpushare_ptx_check(ctypes.byref(self.struct), form, ctypes.byref(line), *buffer))
        return Refusal(line.value, reason) if reason else None

    def transform(self) -> str:
        """The module with the kernel and its forms. UnimplementedError: one of them is refused."""
        return read_text(lambda *buffer: library().gpushare_ptx_transform(ctypes.byref(self.struct), *buffer))


def entries(text: str | bytes) -> list[str]:
    """The names of the kernels in a text, in its order; none where it is not understood."""
    code = Ptx(text)
    return read_text(lambda *buffer: library().gpushare_ptx_entries(ctypes.byref(code.struct), *buffer)).split()
