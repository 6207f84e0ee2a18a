/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_FACTS_H
#define CLI_FACTS_H

/*
 * Facts about one thing: one line each for people, or one member each of a JSON object. An unknown
 * fact tells people why it is unknown, and is null in JSON.
 */

#include <jansson.h>

#include <openvgpu/host.h>

#include "cli/arguments.h"

struct facts {
        bool is_json;
        json_t *root;    /* owned */
        json_t *section; /* of it; borrowed */
        size_t n_lines;
};

/* facts_init() - nothing is known yet. facts_deinit() may be called twice. */
void facts_init(struct facts *facts, const struct arguments *arguments);
void facts_deinit(struct facts *facts);

/* facts_begin() - what follows is in an object of that name, and below a title; NULL: in the root. */
void facts_begin(struct facts *facts, const char *key, const char *title);

/* facts_add() - takes the reference @value. */
__attribute__((format(printf, 5, 6))) void facts_add(struct facts *facts, const char *key,
                                                     const char *label, json_t *value,
                                                     const char *format, ...);

/* facts_add_unknown() - the last call of @host, which asked for it, failed. */
void facts_add_unknown(struct facts *facts, const char *key, const char *label,
                       const struct vgpu_host *host);

/* Of the common kinds; with what the library returned: if that is an error, it is unknown. */
void facts_add_bytes(struct facts *facts, const char *key, const char *label,
                     const struct vgpu_host *host, int r, uint64_t bytes);
void facts_add_number(struct facts *facts, const char *key, const char *label,
                      const struct vgpu_host *host, int r, uint32_t number, const char *unit);
void facts_add_flag(struct facts *facts, const char *key, const char *label,
                    const struct vgpu_host *host, int r, bool flag);
void facts_add_text(struct facts *facts, const char *key, const char *label,
                    const struct vgpu_host *host, int r, const char *text);

/* facts_why() - why a value is not known, in a word or two: "not supported", "needs R550". */
#define FACTS_WHY_MAX 64
char *facts_why(char *text, const struct vgpu_host *host);

/* facts_take() - the JSON object; the caller owns it. */
json_t *facts_take(struct facts *facts);

static inline void facts_deinitp(struct facts *facts)
{
        facts_deinit(facts);
}

#endif
