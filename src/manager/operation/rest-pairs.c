/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/rest-pairs.h"

#include <stdint.h>
#include <stdio.h>

#include "manager/model/guest.h"
#include "manager/model/sharing.h"
#include "manager/operation/participant.h"

struct pairs {
        const struct guest *of;
        char *text;
        size_t at, n;
};

/* From both ends, and twice if each has memory of the other: it counts from the lower number, and once. */
static int add(struct guest *partner, void *userdata)
{
        struct pairs *pairs = userdata;

        if (!partner->participant ||
            partner->participant->rest.number <= pairs->of->participant->rest.number ||
            partner->participant->rest.met == pairs->of->participant->rest.number)
                return 0;
        partner->participant->rest.met = pairs->of->participant->rest.number;
        if (pairs->n++ < REST_PAIRS_MAX)
                pairs->at += (size_t)snprintf(
                        pairs->text + pairs->at, REST_PAIRS_TEXT - pairs->at, "%s%d with %d",
                        pairs->at > 0 ? ", " : "; memory is shared: ", (int)pairs->of->pid,
                        (int)partner->pid);
        return 0;
}

/* Others than these have the number 0. */
static void number(struct guest *const *guests, size_t n, bool is_on)
{
        for (size_t i = 0; i < n; i++) {
                guests[i]->participant->rest.number = is_on ? (uint32_t)i + 1 : 0;
                guests[i]->participant->rest.met = 0;
        }
}

void rest_list_pairs(struct guest *const *guests, size_t n, char ret_text[REST_PAIRS_TEXT])
{
        struct pairs pairs = { .text = ret_text };

        ret_text[0] = '\0';
        number(guests, n, true);
        for (size_t i = 0; i < n; i++) {
                pairs.of = guests[i];
                (void)sharing_each_partner(guests[i], add, &pairs);
        }
        number(guests, n, false);
        if (pairs.n > REST_PAIRS_MAX)
                (void)snprintf(ret_text + pairs.at, REST_PAIRS_TEXT - pairs.at, " and %zu more",
                               pairs.n - REST_PAIRS_MAX);
}
