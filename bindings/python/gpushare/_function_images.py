"""What functions of modules were loaded from: the images that registrations of graphs give to the library."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from gpushare import abi

# As the library allows; of more, those loaded first are forgotten.
LIMIT = 65536
BYTES_LIMIT = 256 << 20  # of all images, which the library refuses beyond it


class FunctionImages:
    """The cubins of functions by their CUfunction. Threads: any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._images: dict[int, tuple[bytes, bytes]] = {}  # function: image, name
        self._bytes = 0  # of all images
        self._array: Any = None  # of all of them; None: to be made

    def add(self, function: int, image: bytes, name: str) -> None:
        """Remembers a function. The driver may give the address of an unloaded one again: the last image counts."""
        with self._lock:
            self._forget(function)
            self._images[function] = (image, name.encode())
            self._bytes += len(image)
            while len(self._images) > LIMIT or self._bytes > BYTES_LIMIT:
                self._forget(next(iter(self._images)))
            self._array = None

    def _forget(self, function: int) -> None:
        image, _ = self._images.pop(function, (b'', b''))
        self._bytes -= len(image)

    def __len__(self) -> int:
        with self._lock:
            return len(self._images)

    def array(self) -> Any:
        """All of them as an array of gpushare_function_image, which keeps what it points to; None: there are none."""
        with self._lock:
            if self._array is None and self._images:
                array: Any = (abi.gpushare_function_image * len(self._images))()
                for entry, (function, (image, name)) in zip(array, self._images.items(), strict=True):
                    entry.function = function
                    entry.image = ctypes.cast(ctypes.c_char_p(image), ctypes.c_void_p)
                    entry.image_bytes = len(image)
                    entry.name = name
                array.kept = list(self._images.values())
                self._array = array
            return self._array


function_images = FunctionImages()
