"""Sorting the documents of each query by score."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel

_RUN = 16
_SAMPLE = 31  # keys, whose median is taken for that of all
_SHORT = 256  # documents: so few are sorted by counting


@inner_kernel
def max_query_size(indptr: Ints) -> int:
    """Return the number of documents of the longest query."""
    longest = 0
    for q in range(len(indptr) - 1):
        longest = max(longest, indptr[q + 1] - indptr[q])
    return longest


@inner_kernel
def merge_sort(keys: Floats | Ints, items: Ints, keys2: Floats | Ints, items2: Ints, n: int) -> None:
    """Sort the first ``n`` items and keys by descending key, in place, stably; ``keys2``, ``items2`` are scratch.

    Insertion sort on short runs, then merges that are skipped where two runs are already in order: linear on
    sorted input, so re-ranking after a small change of the scores is cheap.
    """
    for low in range(0, n, _RUN):
        for i in range(low + 1, min(low + _RUN, n)):
            key, item, j = keys[i], items[i], i - 1
            while j >= low and keys[j] < key:
                keys[j + 1], items[j + 1] = keys[j], items[j]
                j -= 1
            keys[j + 1], items[j + 1] = key, item
    width = _RUN
    while width < n:
        for low in range(0, n - width, 2 * width):
            mid, high = low + width, min(low + 2 * width, n)
            if keys[mid - 1] >= keys[mid]:
                continue
            for i in range(width):
                keys2[i], items2[i] = keys[low + i], items[low + i]
            left, right, to = 0, mid, low
            while left < width and right < high:
                if keys2[left] >= keys[right]:
                    keys[to], items[to] = keys2[left], items2[left]
                    left += 1
                else:
                    keys[to], items[to] = keys[right], items[right]
                    right += 1
                to += 1
            while left < width:
                keys[to], items[to] = keys2[left], items2[left]
                left += 1
                to += 1
        width *= 2


@inner_kernel
def count_sort(keys: Floats, items: Ints, keys2: Floats, items2: Ints, n: int) -> None:
    """Sort as ``merge_sort`` does, by counting the items before each: n^2 comparisons, but many at a time.

    On short lists without order this is several times faster than sorting.
    """
    for i in range(n):
        keys2[i], items2[i] = keys[i], items[i]
    for i in range(n):
        key, rank = keys2[i], 0
        for j in range(n):
            rank += keys2[j] > key
        equal = 0
        for j in range(i):
            equal += keys2[j] == key
        keys[rank + equal], items[rank + equal] = key, items2[i]


@inner_kernel
def sort_descending(keys: Floats, items: Ints, keys2: Floats, items2: Ints, n: int) -> None:
    """Sort the first ``n`` items and keys by descending key, in place, stably, in the quickest way for such a list."""
    ascents = 0
    for i in range(1, n):
        ascents += keys[i - 1] < keys[i]
    if n <= _SHORT and ascents > n // 8:
        count_sort(keys, items, keys2, items2, n)
    elif ascents > 0:
        merge_sort(keys, items, keys2, items2, n)


@inner_kernel
def bucket_sort(keys: Floats, items: Ints, n: int, low: float) -> tuple[Floats, Ints]:
    """Return the first ``n`` keys, sorted ascending and stably, and their items; no key may be below ``low``.

    Keys are dealt into about as many buckets, by k / (k + their median), k above ``low``, which are then sorted:
    linear, unless most keys crowd together.
    """
    step = max(n // _SAMPLE, 1)
    drawn, sample = min((n + step - 1) // step, _SAMPLE), np.empty(_SAMPLE)
    for k in range(drawn):
        key, at = keys[k * step], k
        while at > 0 and sample[at - 1] > key:
            sample[at] = sample[at - 1]
            at -= 1
        sample[at] = key
    middle = sample[drawn // 2] - low if n > 0 else 0.0
    middle = middle if middle > 0.0 else 1.0
    buckets = max(n // 2, 1)
    places, starts = np.empty(n, np.int64), np.zeros(buckets + 1, np.int64)
    for i in range(n):
        key = keys[i] - low
        place = min(int(buckets * (key / (key + middle))), buckets - 1)
        places[i] = place
        starts[place + 1] += 1
    for place in range(buckets):
        starts[place + 1] += starts[place]
    out_keys, out_items = np.empty(n), np.empty(n, items.dtype)
    for i in range(n):
        at = starts[places[i]]
        out_keys[at], out_items[at] = -keys[i], items[i]
        starts[places[i]] += 1  # in the end, where the next bucket starts
    keys2, items2, start = np.empty(n), np.empty(n, items.dtype), 0
    for place in range(buckets):
        stop = starts[place]
        if stop - start > 1:
            merge_sort(out_keys[start:stop], out_items[start:stop], keys2, items2, stop - start)
        start = stop
    for i in range(1, n):
        j = i
        while j > 0 and out_keys[j - 1] < out_keys[j]:  # rounding has put the larger key into the bucket before
            out_keys[j - 1], out_keys[j] = out_keys[j], out_keys[j - 1]
            out_items[j - 1], out_items[j] = out_items[j], out_items[j - 1]
            j -= 1
    for i in range(n):
        out_keys[i] = -out_keys[i]
    return out_keys, out_items


@kernel
def sort_rows(scores: Floats, tie: Floats, indptr: Ints, start: int, stop: int, order: Ints) -> None:
    """Sort the rows of each query ``start`` to ``stop`` by descending score, then ascending ``tie``, then row.

    ``order`` holds the rows of each query in any order (the last ranking is a good start) and is sorted in place.
    """
    longest = max_query_size(indptr[start : stop + 1])
    keys, keys2 = np.empty(longest), np.empty(longest)
    items2 = np.empty(longest, order.dtype)
    for q in range(start, stop):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        items = order[a : a + n]
        for i in range(n):
            keys[i] = scores[items[i]]
        sort_descending(keys, items, keys2, items2, n)
        low = 0
        while low < n:
            high = low + 1
            while high < n and keys[high] == keys[low]:
                high += 1
            if high - low > 1:
                run_keys, run = keys[low:high], items[low:high]
                for i in range(high - low):
                    run_keys[i] = -run[i]
                merge_sort(run_keys, run, keys2, items2, high - low)
                for i in range(high - low):
                    run_keys[i] = -tie[run[i]]
                merge_sort(run_keys, run, keys2, items2, high - low)
            low = high


@kernel
def average_ties(order: Ints, scores: Floats, tie: Floats, indptr: Ints, values: Floats) -> None:
    """Replace the values of documents with the same query, score and ``tie`` by their mean.

    ``order`` holds the rows sorted by score and ``tie``.
    """
    for q in range(len(indptr) - 1):
        low, end = indptr[q], indptr[q + 1]
        while low < end:
            high, total = low + 1, values[order[low]]
            score, key = scores[order[low]], tie[order[low]]
            while high < end and scores[order[high]] == score and tie[order[high]] == key:
                total += values[order[high]]
                high += 1
            if high - low > 1:
                for i in range(low, high):
                    values[order[i]] = total / (high - low)
            low = high
