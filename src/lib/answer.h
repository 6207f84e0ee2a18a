/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_ANSWER_H
#define LIB_ANSWER_H

/* Turns NVML's answers into ours: translates numbers, copies texts and lists. */

#include "lib/growing.h"

/* answer_numbers() - make a list of the unsigned ints in @growing. */
int answer_numbers(struct vgpu_host *host, const struct growing *growing,
                   struct vgpu_number_list **ret_list);

/* answer_text() - copy the text in @growing, an array of char, up to its NUL; the NUL may be missing. */
int answer_text(struct vgpu_host *host, const struct growing *growing, char **ret_text);

/*
 * answer_list() - make a zeroed piece of memory: @head bytes, and behind them @n items of @item_size
 * bytes, at *@ret_items. NULL: no memory is left, and the error is set.
 */
void *answer_list(struct vgpu_host *host, size_t head, size_t n, size_t item_size, void *ret_items);

/*
 * answer_records() - do the same for structs that may grow: a caller gets pointers to them
 * @ret_pointers:  the pointers to the items, in the same piece
 */
void *answer_records(struct vgpu_host *host, size_t head, size_t n, size_t item_size,
                     void *ret_items, void *ret_pointers);

/* answer_expect() - return 0 if the driver filled in what we need; the message names @what. */
int answer_expect(struct vgpu_host *host, bool is_fine, const char *what);

#endif
