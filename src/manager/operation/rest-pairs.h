/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_REST_PAIRS_H
#define MANAGER_REST_PAIRS_H

/* Who shares memory with whom, in words: the kernel of one may wait for what the other writes there. */

#include <stddef.h>

struct guest;

/* So many pairs are named, and there is room for them. */
#define REST_PAIRS_MAX  6
#define REST_PAIRS_TEXT 256

/*
 * rest_list_pairs() - those of the @n @guests that share memory with each other, by their process ids; "" for none.
 *
 * Each pair is named once, and of more than REST_PAIRS_MAX it says how many there are. It takes time in proportion to what
 * they share, however many they are.
 */
void rest_list_pairs(struct guest *const *guests, size_t n, char ret_text[REST_PAIRS_TEXT]);

#endif
