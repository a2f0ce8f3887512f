"""Rankings for upper bounds of type two: the hardest perfect one, the best imperfect one, the most violated one.

A measure sees a query as classes of documents with equal gains, class 0 the best. A ranking is an order of the query's
rows. Its query-level score is F = sum of coef_k s_k, where the coefficients come from pairs of documents: of different
classes only (the pair Phi), or of all (eq. 2).
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel
from rankwright.kernels.measures.sorting import max_query_size, merge_sort, sort_rows


@kernel
def find_classes(gain: Floats, indptr: Ints) -> tuple[Ints, Ints, Floats]:
    """Return each document's class, numbered from the highest gain, and each query's numbers of classes and pairs."""
    classes, counts = np.empty(len(gain), np.int64), np.empty(len(indptr) - 1, np.int64)
    pairs, longest = np.empty(len(counts)), max_query_size(indptr)
    keys, keys2, rows, rows2 = (
        np.empty(longest),
        np.empty(longest),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
    )
    for q in range(len(counts)):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        for i in range(n):
            keys[i], rows[i] = gain[a + i], a + i
        merge_sort(keys, rows, keys2, rows2, n)
        here, size, equal = 0, 0, 0
        for i in range(n):
            if i > 0 and keys[i] != keys[i - 1]:
                equal += size * size
                here, size = here + 1, 0
            classes[rows[i]] = here
            size += 1
        counts[q], pairs[q] = here + 1, (n * n - (equal + size * size)) / 2.0
    return classes, counts, pairs


@inner_kernel
def group_by_class(rows: Ints, classes: Ints) -> tuple[Ints, Ints]:
    """Return the rows of a query sorted by class, stably, and where each class starts."""
    last = 0
    for row in rows:
        last = max(last, classes[row])
    starts, filled = np.zeros(last + 2, np.int64), np.zeros(last + 2, np.int64)
    for row in rows:
        starts[classes[row] + 1] += 1
    for c in range(1, last + 2):
        starts[c] += starts[c - 1]
        filled[c] = starts[c]
    grouped = np.empty(len(rows), np.int64)
    for row in rows:
        grouped[filled[classes[row]]] = row
        filled[classes[row]] += 1
    return grouped, starts


@kernel
def fill_pair_coefficients(
    order: Ints, classes: Ints, n_classes: Ints, norm: Floats, indptr: Ints, out: Floats
) -> None:
    """Write the coefficient of every score in a ranking's score F, from pairs of different classes (the pair Phi).

    It is the number of documents of other classes that follow less the number that precede, divided by the norm.
    """
    most = 0
    for q in range(len(norm)):
        most = max(most, n_classes[q])
    sizes, seen = np.empty(most, np.int64), np.empty(most, np.int64)
    for q in range(len(norm)):
        a, b, count = indptr[q], indptr[q + 1], n_classes[q]
        for c in range(count):
            sizes[c], seen[c] = 0, 0
        for i in range(a, b):
            sizes[classes[i]] += 1
        for at in range(a, b):
            row = order[at]
            own, total = classes[row], 0
            for c in range(own):
                total += sizes[c] - 2 * seen[c]  # of higher classes: those after it less those before it
            for c in range(own + 1, count):
                total += sizes[c] - 2 * seen[c]
            seen[own] += 1
            out[row] = total / norm[q]


@kernel
def fill_rank_coefficients(order: Ints, norm: Floats, indptr: Ints, out: Floats) -> None:
    """Write the coefficient of every score in a ranking's score F of eq. (2): (n + 1 - 2 rank) / norm."""
    for q in range(len(norm)):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        for r in range(n):
            out[order[a + r]] = (n - 1 - 2 * r) / norm[q]


@kernel
def find_hardest_perfect(scores: Floats, classes: Ints, depth: int, indptr: Ints, order: Ints) -> None:
    """Write each query's perfect ranking (with the highest measure) that has the lowest score F to ``order``.

    The measure is strict, with ``depth`` ranks.
    It is by class, the lowest scores first; after ``depth`` ranks it is by ascending score alone.
    """
    keys, ties = np.empty(len(scores)), np.empty(len(scores))
    for i in range(len(scores)):
        keys[i], ties[i] = -scores[i], classes[i]
    sort_rows(keys, ties, indptr, 0, len(indptr) - 1, order)
    for q in range(len(indptr) - 1):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        rows = order[a : a + n]
        head, _ = group_by_class(rows, classes)
        taken, deep = np.zeros(n, np.bool_), min(depth, n)
        for r in range(deep):
            taken[head[r] - a] = True
        at = n - 1
        for i in range(n - 1, -1, -1):  # from the highest score down, into the last places
            if not taken[rows[i] - a]:
                rows[at] = rows[i]
                at -= 1
        for r in range(deep):
            rows[r] = head[r]


@kernel
def find_best_imperfect(scores: Floats, classes: Ints, depth: int, indptr: Ints, order: Ints) -> None:
    """Change each query's ranking, if it is perfect, to the imperfect ranking with the highest score F.

    The measure is strict, with ``depth`` ranks.
    It is the order of the scores, unless that is perfect; then the cheaper of two changes: the cheapest swap of
    neighbours of different classes, the first of them within ``depth``, or the first document of another class after
    ``depth`` moved up to ``depth``. ``order`` holds the documents by score, of equal scores the lower class first.
    """
    for q in range(len(indptr) - 1):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        rows, last = order[a : a + n], min(depth, n) - 1
        if not _is_perfect(rows, classes, last):
            continue
        swap, least = -1, np.inf
        for j in range(min(last + 1, n - 1)):
            cost = scores[rows[j]] - scores[rows[j + 1]]
            if classes[rows[j]] != classes[rows[j + 1]] and cost < least:
                swap, least = j, cost
        at = last + 1
        while at < n and classes[rows[at]] == classes[rows[last]]:
            at += 1
        cost = 0.0
        for p in range(last, min(at, n)):
            cost += scores[rows[p]] - scores[rows[min(at, n - 1)]]
        if at < n and cost < least:
            moved = rows[at]
            for p in range(at, last, -1):
                rows[p] = rows[p - 1]
            rows[last] = moved
        elif swap >= 0:
            rows[swap], rows[swap + 1] = rows[swap + 1], rows[swap]


@inner_kernel
def _is_perfect(rows: Ints, classes: Ints, last: int) -> bool:
    """Return whether the ranks up to ``last`` hold the best classes, in order."""
    for p in range(last):
        if classes[rows[p]] > classes[rows[p + 1]]:
            return False
    for p in range(last + 1, len(rows)):
        if classes[rows[p]] < classes[rows[last]]:
            return False
    return True


@kernel
def find_most_violated_precision(
    scores: Floats, classes: Ints, norm: Floats, trade: float, live: Ints, indptr: Ints, order: Ints
) -> None:
    """Rank each query to maximise its score F plus ``trade`` times (1 - AP), for binary relevance.

    ``order`` holds the documents by score at first; there are two classes, and only queries in ``live`` are ranked.
    Relevant and irrelevant documents stay sorted by score among themselves. If the j-th irrelevant one comes after p
    relevant ones, it costs every later relevant document i the precision i/(i+j-1) - i/(i+j), which is
    j/(i+j) - (j-1)/(i+j-1), and F changes by -2 (s_i - s_j) / norm. So every irrelevant document's place is chosen on
    its own, and the best p grows with j (both terms fall with j): the middle one's place halves the others' search.
    """
    longest = max_query_size(indptr)
    harmonic = np.zeros(longest + 2)
    for i in range(1, longest + 2):
        harmonic[i] = harmonic[i - 1] + 1.0 / i
    place, stack = np.empty(longest, np.int64), np.empty((128, 4), np.int64)
    for q in live:
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        R, N, relevant, others = 0, 0, np.empty(n, np.int64), np.empty(n, np.int64)
        for p in range(a, a + n):
            if classes[order[p]] == 0:
                relevant[R] = order[p]
                R += 1
            else:
                others[N] = order[p]
                N += 1
        sums = np.zeros(R + 1)
        for i in range(R):
            sums[i + 1] = sums[i] + scores[relevant[i]]
        weight, price = trade / R, 2.0 / norm[q]
        top = 1
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, N, 0, R
        while top > 0:
            top -= 1
            low, high, first, last = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
            if low >= high:
                continue
            j = (low + high) // 2
            t, best, chosen = scores[others[j]], -np.inf, first
            for p in range(first, last + 1):
                lost = (j + 1) * (harmonic[R + j + 1] - harmonic[p + j + 1]) - j * (harmonic[R + j] - harmonic[p + j])
                value = weight * lost - price * (sums[R] - sums[p] - (R - p) * t)
                if value > best:
                    best, chosen = value, p
            place[j] = chosen
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = low, j, first, chosen
            top += 1
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = j + 1, high, chosen, last
            top += 1
        merged, i = order[a : a + n], 0
        for j in range(N):
            while i < place[j]:
                merged[i + j] = relevant[i]
                i += 1
            merged[i + j] = others[j]
        for p in range(i, R):
            merged[p + N] = relevant[p]
