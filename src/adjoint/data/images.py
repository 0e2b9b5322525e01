"""Folders of images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.data.columns import library
from adjoint.files import as_path
from adjoint.functions.arguments import as_choice, integers

_SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}


class ImageFolder:
    """Images in a folder per class: a record is the pair of an image and the number of its class.

    An image is a float32 array of shape (channels, height, width) from 0 to 1, as convolutions take it. It is read from
    its file when it is asked for; in memory are the names.

    Parameters
    ----------
    path
        A folder whose folders are the classes, in the order of their names, which `classes` has. Images may be in
        folders below.
    size
        Height and width that images are scaled to, or one number for both. None leaves them as they are, and those of a
        batch must then be alike.
    mode
        "RGB", "RGBA" or "L", which has one channel of grey.

    Raises
    ------
    FileError, ArgumentError, ArgumentTypeError, MissingLibraryError
        There is no such folder, or it has no images in folders; a file is no image; Pillow is not installed
        (`pip install 'adjoint[data]'`).
    """

    def __init__(self, path: Any, size: Any = None, mode: str = "RGB") -> None:
        library("PIL.Image", "ImageFolder")
        self._mode = as_choice(mode, "ImageFolder", "mode", ("RGB", "RGBA", "L"))
        sizes = () if size is None else integers(size, "ImageFolder", "sizes")
        if len(sizes) > 2 or not all([n > 0 for n in sizes]):
            raise errors.ArgumentError(
                f"ImageFolder: size is a positive integer or a pair of these, received {errors.shown(size)}"
            )
        self._size = (sizes[0], sizes[-1]) if sizes else None
        root = as_path(path, "ImageFolder", "path is a folder")
        if not root.is_dir():
            raise errors.FileError(f"ImageFolder: {root} is no folder")
        self.classes: list[str] = sorted([folder.name for folder in root.iterdir() if folder.is_dir()])
        self.files: list[tuple[Path, int]] = [
            (file, number)
            for number, name in enumerate(self.classes)
            for file in sorted((root / name).rglob("*"))
            if file.suffix.lower() in _SUFFIXES
        ]
        if not self.files:
            raise errors.FileError(f"ImageFolder: {root} has no folder with images; each class is a folder of its own")

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[np.ndarray[Any, Any], int]:
        from PIL import Image, ImageOps

        file, number = self.files[index]
        try:
            with Image.open(file) as found:
                image = ImageOps.exif_transpose(found).convert(self._mode)
        except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises of broken files
            raise errors.FileError(f"ImageFolder: {file} is no image: {error}") from error
        if self._size is not None:
            height, width = self._size
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pixels = np.asarray(image, np.float32) / 255
        return np.ascontiguousarray(np.moveaxis(np.atleast_3d(pixels), -1, 0)), number
