/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/answer.h"

/* Items stand behind a struct, at an offset where any type may begin. */
static size_t round_up(size_t size)
{
        return (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

void *answer_list(struct vgpu_host *host, size_t head, size_t n, size_t item_size, void *ret_items)
{
        char *piece = calloc(1, round_up(head) + n * item_size + 1);
        void *items;

        if (!piece) {
                host_set_no_memory(host);
                return NULL;
        }
        items = piece + round_up(head);
        memcpy(ret_items, &items, sizeof(items));
        return piece;
}

void *answer_records(struct vgpu_host *host, size_t head, size_t n, size_t item_size,
                     void *ret_items, void *ret_pointers)
{
        size_t items_size = round_up(n * item_size);
        void **pointers;
        char *items;
        void *piece = answer_list(host, head, items_size + n * sizeof(*pointers), 1, &items);

        if (!piece)
                return NULL;
        pointers = (void **)(void *)(items + items_size);
        for (size_t i = 0; i < n; i++)
                pointers[i] = items + i * item_size;
        memcpy(ret_items, &items, sizeof(items));
        memcpy(ret_pointers, &pointers, sizeof(pointers));
        return piece;
}

int answer_numbers(struct vgpu_host *host, const struct growing *growing,
                   struct vgpu_number_list **ret_list)
{
        struct vgpu_number_list *list;
        uint32_t *numbers;

        list = answer_list(host, sizeof(*list), growing->count, sizeof(*numbers), &numbers);
        if (!list)
                return -ENOMEM;
        if (growing->count > 0)
                memcpy(numbers, growing->items, growing->count * sizeof(*numbers));
        list->n_numbers = growing->count;
        list->numbers = numbers;
        *ret_list = list;
        return 0;
}

int answer_text(struct vgpu_host *host, const struct growing *growing, char **ret_text)
{
        char *text = strndup(growing->items, growing->room);

        if (!text)
                return host_set_no_memory(host);
        *ret_text = text;
        return 0;
}

int answer_expect(struct vgpu_host *host, bool is_fine, const char *what)
{
        return is_fine ? 0
                       : host_set_error(host, host->about, VGPU_ERROR_DRIVER_FAILED, "",
                                        "the driver's answer has no usable %s", what);
}
