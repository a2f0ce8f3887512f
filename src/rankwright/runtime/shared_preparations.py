"""Preparations that several fits to the same data share, such as bins of features: made once, then found again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

MAX_SHARED = 256 << 20  # bytes of preparations that are kept


class _Slot:
    """A place for one preparation, with a lock that is held only while it is made."""

    __slots__ = ("lock", "n_bytes", "used", "value")

    def __init__(self, n_bytes: int) -> None:
        self.lock, self.n_bytes, self.used = threading.Lock(), n_bytes, 0
        self.value: Any = None


class PreparationCache:
    """A cache of what was prepared for data sets, such as bins of features, by the identity of the data set.

    A preparation is forgotten with its data set, with the cache, or when others need the memory: the one that was not
    used for longest goes first. Several threads may use one cache. A thread waits for another only while that one
    makes the very preparation that it needs.

    Parameters
    ----------
    max_bytes : int
        The most memory of all preparations together; the last one is kept in any case.

    Examples
    --------
    >>> class Data: pass
    >>> data, cache = Data(), PreparationCache()
    >>> with cache.use():
    ...     first = prepare_once(data, "list", lambda: [1, 2])
    ...     prepare_once(data, "list", lambda: [1, 2]) is first
    True
    >>> prepare_once(data, "list", lambda: [1, 2]) is first  # outside the block nothing is shared
    False
    """

    def __init__(self, max_bytes: int = MAX_SHARED) -> None:
        self.max_bytes = max_bytes
        self._slots: WeakKeyDictionary[Any, dict[Hashable, _Slot]] = WeakKeyDictionary()
        self._lock, self._clock = threading.Lock(), 0

    @contextmanager
    def use(self) -> Iterator[None]:
        """Let ``prepare_once`` use this cache inside the block, in this thread."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @property
    def n_bytes(self) -> int:
        """The memory of all preparations that are kept, as far as it was declared."""
        with self._lock:
            return sum(slot.n_bytes for slots in list(self._slots.values()) for slot in slots.values())

    def find_or_make(self, data: Any, key: Hashable, make: Callable[[], T], n_bytes: int) -> T:
        """Return the preparation of a data set under this key; make and keep it if there is none."""
        slot = self._find_slot(data, key, n_bytes)
        with slot.lock:
            if slot.value is None:
                slot.value = make()
            value: T = slot.value
        if value is data:  # kept, it would keep itself
            with self._lock:
                self._slots.get(data, {}).pop(key, None)
        return value

    def _find_slot(self, data: Any, key: Hashable, n_bytes: int) -> _Slot:
        """Return the place of a preparation, and remove old ones if there is no memory for a new one."""
        with self._lock:
            self._clock += 1
            slots = self._slots.setdefault(data, {})
            if key not in slots:
                self._make_room(n_bytes)
                slots[key] = _Slot(n_bytes)
            slots[key].used = self._clock
            return slots[key]

    def _make_room(self, n_bytes: int) -> None:
        """Forget the preparations that were not used for longest until there is memory for a new one."""
        every = [(slot.used, slot.n_bytes, slots, key) for slots in self._slots.values() for key, slot in slots.items()]
        total = n_bytes + sum(size for _, size, _, _ in every)
        for _, size, slots, key in sorted(every, key=lambda entry: entry[0]):
            if total <= self.max_bytes:
                return
            if size:
                del slots[key]
                total -= size


_current: ContextVar[PreparationCache | None] = ContextVar("preparations", default=None)


def prepare_once(data: Any, key: Hashable, make: Callable[[], T], n_bytes: int = 0) -> T:
    """Return what ``make`` returns, or what it returned before for the same data set and key.

    Nothing is kept outside a block of ``PreparationCache.use``.

    Parameters
    ----------
    data : object
        The data set, which is known by its identity: it must not be changed. It must allow weak references.
    key : hashable
        What is prepared, with all that it depends on beside the data set.
    make : callable
        It makes the preparation, which must not be changed by those who use it.
    n_bytes : int
        About how much memory the preparation takes.
    """
    cache = _current.get()
    return make() if cache is None else cache.find_or_make(data, key, make, n_bytes)
