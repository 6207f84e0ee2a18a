/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_ANSWER_H
#define LIB_ANSWER_H

/* Turns NVML's answers into ours: translates numbers, copies texts and lists. */

#include "lib/growing.h"

/* answer_numbers() - a list of the @growing unsigned ints. */
int answer_numbers(struct vgpu_host *host, const struct growing *growing,
                   struct vgpu_number_list **ret_list);

/* answer_text() - what is in @growing, which is of char, up to its NUL; that may be missing. */
int answer_text(struct vgpu_host *host, const struct growing *growing, char **ret_text);

/*
 * answer_list() - a zeroed piece of memory of @head bytes and behind it @n items of @item_size
 * bytes, at *@ret_items. NULL: no memory, and the error is set.
 */
void *answer_list(struct vgpu_host *host, size_t head, size_t n, size_t item_size, void *ret_items);

/*
 * answer_records() - the same for structs that may grow, of which a caller gets pointers
 * @ret_pointers:  the pointers to the items, in the same piece
 */
void *answer_records(struct vgpu_host *host, size_t head, size_t n, size_t item_size,
                     void *ret_items, void *ret_pointers);

/* answer_expect() - 0 if the driver has filled in what we count on; @what for the message. */
int answer_expect(struct vgpu_host *host, bool is_fine, const char *what);

#endif
