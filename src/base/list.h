/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

/*
 * A doubly linked list whose links are members of the listed objects. Nothing is allocated, and an
 * entry leaves in one step without a search. The head is a link too. An entry that is in no list
 * points at itself, so that list_remove() may be called twice.
 */

#include <stdbool.h>
#include <stddef.h>

struct list {
        struct list *next, *previous;
};

static inline void list_init(struct list *list)
{
        list->next = list->previous = list;
}

static inline bool list_is_empty(const struct list *list)
{
        return list->next == list;
}

/* list_count() - how many entries @head has. */
static inline size_t list_count(const struct list *head)
{
        size_t n = 0;

        for (const struct list *link = head->next; link != head; link = link->next)
                n++;
        return n;
}

/* list_append() - add @entry, which is in no list, at the end of @head. */
static inline void list_append(struct list *head, struct list *entry)
{
        entry->previous = head->previous;
        entry->next = head;
        head->previous->next = entry;
        head->previous = entry;
}

static inline void list_remove(struct list *entry)
{
        entry->previous->next = entry->next;
        entry->next->previous = entry->previous;
        list_init(entry);
}

/* The object of @type whose member @member is @link. */
#define list_entry(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

#define list_for_each(entry, head, member)                                   \
        for (entry = list_entry((head)->next, __typeof__(*(entry)), member); \
             &(entry)->member != (head);                                     \
             entry = list_entry((entry)->member.next, __typeof__(*(entry)), member))

/* @entry may be removed and freed in the body; @after holds the next one. */
#define list_for_each_safe(entry, after, head, member)                              \
        for (entry = list_entry((head)->next, __typeof__(*(entry)), member),        \
            after = list_entry((entry)->member.next, __typeof__(*(entry)), member); \
             &(entry)->member != (head); entry = after,                             \
            after = list_entry((entry)->member.next, __typeof__(*(entry)), member))

#endif
