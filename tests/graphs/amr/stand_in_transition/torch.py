"""A stand-in for torch 1.13 in the worker's environment; ``STAND_IN_GPU=9.0`` gives it a GPU of that generation."""

from __future__ import annotations

import os

__version__ = "1.13.1+cu116"


class cuda:
    """GPU of the environment variable."""

    @staticmethod
    def is_available() -> bool:
        """Return whether there is a GPU."""
        return "STAND_IN_GPU" in os.environ

    @staticmethod
    def get_device_capability(_: int) -> tuple[int, ...]:
        """Return the generation."""
        return tuple(int(number) for number in os.environ["STAND_IN_GPU"].split("."))

    @staticmethod
    def get_arch_list() -> list[str]:
        """Return what the build has code for."""
        return ["sm_70", "sm_80"]

    @staticmethod
    def get_device_name(_: int) -> str:
        """Return a name."""
        return "NVIDIA H100"
