"""Freed memory of a process that receives much, returned to the system."""

import ctypes

# As <malloc.h> of glibc names them. Once a threshold is set, it no longer grows by itself.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8
_LARGE = 1 << 17  # bytes; glibc begins with as many
_ARENAS = 2


def return_freed_memory() -> None:
    """Have buffers of 128 kB and more returned to the system when they are freed.

    By itself glibc takes freed buffers of up to 32 MB into pools, one for each thread, where small
    objects that live longer hold them: an API that receives fifty files at a time kept 50 MB more.
    Other C libraries have no such thresholds, and are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_MMAP_THRESHOLD, _LARGE)
    mallopt(_TRIM_THRESHOLD, _LARGE)
    mallopt(_ARENA_MAX, _ARENAS)
