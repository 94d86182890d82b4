# SPDX-License-Identifier: Apache-2.0
"""Several short samples in one row: which go together, and what a row says of them."""
import bisect

import numpy


def rows_of(lengths, tokens, seed):
    """Lists of numbers of samples, each of `tokens` together at most: the longest first, each into the fullest row that holds it (best fit decreasing). Which of equal length
    comes first, and the order of rows and within them, is drawn from the seed."""
    draw = numpy.random.default_rng(seed)
    order = draw.permutation(len(lengths))
    order = order[numpy.argsort(-numpy.asarray(lengths)[order], kind="stable")]
    rows, room = [], []  # `room`: (tokens that are left, row), rising
    for sample in order:
        length = lengths[sample]
        at = bisect.bisect_left(room, (length, -1))
        if at == len(room):
            left, row = tokens, len(rows)
            rows.append([])
        else:
            left, row = room.pop(at)
        rows[row].append(int(sample))
        if left > length:
            bisect.insort(room, (left - length, row))
    return [[rows[row][i] for i in draw.permutation(len(rows[row]))] for row in draw.permutation(len(rows))]


def joined(samples, tokens, ignored):
    """(ids, targets, positions, segments) of a row: positions begin anew with each sample, segments count them from 1; behind them it is filled up with zeros and targets that do not
    count."""
    ids, targets, positions, segments = [], [], [], []
    for number, (own, wanted) in enumerate(samples, 1):
        ids += own
        targets += wanted
        positions += range(len(own))
        segments += [number] * len(own)
    fill = tokens - len(ids)
    return ids + [0] * fill, targets + [ignored] * fill, positions + [0] * fill, segments + [0] * fill
