# SPDX-License-Identifier: Apache-2.0
"""What programs draw (runtime/Random.h), written a second time: for references that train on the same batches in the same order."""
BITS = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15


def mix(x):
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x ^ x >> shift) * factor & BITS
    return x


def name(word):
    value = 0xCBF29CE484222325
    for byte in word.encode():
        value = (value ^ byte) * 0x100000001B3 & BITS
    return value


def key(seed, name_key, step):
    return mix(mix(mix(seed + STEP & BITS) ^ name_key) + (step + 1) * STEP & BITS)


def bits(key_, index):
    return mix(mix(key_ + (index + 1) * STEP & BITS) ^ (key_ << 32 & BITS | key_ >> 32))


def uniform(key_, index):
    """In (0, 1), in double."""
    return ((bits(key_, index) >> 12) + 0.5) * 2.0**-52


def order(samples, seed, epoch):
    """--shuffle of data that are not in shards."""
    places, of_epoch = list(range(samples)), key(seed, name("shuffle"), epoch)
    for i in range(samples, 1, -1):
        j = bits(of_epoch, i) % i
        places[i - 1], places[j] = places[j], places[i - 1]
    return places
