/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

/*
 * A fuzz target: one function that takes any bytes and must come back. libFuzzer looks for inputs
 * with which it does not (meson setup -Dfuzzer=true with clang); fuzz/replay.c runs those that are
 * kept in fuzz/corpus.
 */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
