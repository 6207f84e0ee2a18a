/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_HASH_H
#define GATE_HASH_H

/*
 * A hash table of things that have a 64-bit key (a driver handle or an address) and carry their own
 * link. A fixed number of chains: a guest has thousands of such things, not millions. No lock.
 */

#include <stddef.h>
#include <stdint.h>

#define HASH_CHAINS 1024

struct hash_node {
        uint64_t key;
        struct hash_node *next;
};

struct hash {
        struct hash_node *chain[HASH_CHAINS];
};

static inline struct hash_node **hash_chain(struct hash *hash, uint64_t key)
{
        return &hash->chain[(key * 0x9e3779b97f4a7c15ull) >> 54]; /* the golden ratio: 10 bits */
}

static inline void hash_add(struct hash *hash, struct hash_node *node, uint64_t key)
{
        struct hash_node **chain = hash_chain(hash, key);

        node->key = key;
        node->next = *chain;
        *chain = node;
}

static inline struct hash_node *hash_find(struct hash *hash, uint64_t key)
{
        struct hash_node *node = *hash_chain(hash, key);

        while (node && node->key != key)
                node = node->next;
        return node;
}

static inline void hash_remove(struct hash *hash, struct hash_node *node)
{
        struct hash_node **link = hash_chain(hash, node->key);

        while (*link != node)
                link = &(*link)->next;
        *link = node->next;
}

#endif
