/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/method.h"

#include <string.h>

/* The kinds of headers; what has another kind ends the words, as a word of 0 does that pads them. */
enum operation {
        PADDING = 0,
        INCREASING = 1, /* each of @count data goes to the next method */
        NOT_INCREASING = 3,
        IMMEDIATE = 4, /* the count is the data */
        INCREASING_ONCE = 5,
};

#define SET_OBJECT         0x0000u
#define SET_TRAP_HANDLER   0x25f8u /* the upper word of the address; 0x25fc has the lower */
#define SET_SHADOW_SCRATCH 0x3400u /* what the falcon's next command is about, 3 words */
#define SET_FALCON04       0x0510u /* the command: write the register */

#define CLASS_VOLTA 0xc3c0u

struct method {
        enum operation operation;
        uint32_t subchannel;
        uint32_t name;
        uint32_t count;
};

static struct method method_decode(uint32_t header)
{
        return (struct method){
                .operation = header >> 29,
                .count = header >> 16 & 0x1fff,
                .subchannel = header >> 13 & 7,
                .name = (header & 0xfff) << 2,
        };
}

static bool class_is_compute(uint32_t class)
{
        return (class & 0xff) == 0xc0 && class >= CLASS_VOLTA && class <= 0xffff;
}

/* The header at @words and its data. */
static void scan_keep(struct method_scan *scan, const uint32_t *words, size_t n)
{
        if (scan->n_kept + n > METHOD_KEPT_MAX) {
                scan->is_broken = true;
                return;
        }
        memcpy(&scan->kept[scan->n_kept], words, n * sizeof(*words));
        scan->n_kept += n;
}

static bool method_is(const struct method *method, uint32_t name, uint32_t count)
{
        return method->operation == INCREASING && method->name == name && method->count == count;
}

/* Of a compute object: is it to be kept? */
static bool scan_wants(struct method_scan *scan, const struct method *method)
{
        if (method_is(method, SET_TRAP_HANDLER, 2)) {
                scan->n_kept = 0; /* another one counts no more */
                scan->has_trap_handler = true;
                scan->has_register = false;
                return true;
        }
        if (!scan->has_trap_handler || scan->has_register)
                return false;
        if (method_is(method, SET_FALCON04, 1))
                scan->has_register = true;
        return scan->has_register || method_is(method, SET_SHADOW_SCRATCH, 3);
}

static void scan_take(struct method_scan *scan, const struct method *method, const uint32_t *words)
{
        if (method_is(method, SET_OBJECT, 1)) {
                scan->is_compute[method->subchannel] = class_is_compute(words[1]);
                scan->has_object |= scan->is_compute[method->subchannel];
        } else if (scan->is_compute[method->subchannel] && scan_wants(scan, method)) {
                scan_keep(scan, words, 1 + method->count);
        }
}

void method_scan(struct method_scan *scan, const uint32_t *words, size_t n)
{
        for (size_t i = 0; i < n && !scan->is_broken;) {
                struct method method = method_decode(words[i]);
                size_t n_data = method.count;

                switch (method.operation) {
                case INCREASING:
                case NOT_INCREASING:
                case INCREASING_ONCE:
                        break;
                case IMMEDIATE:
                        n_data = 0;
                        break;
                case PADDING:
                        if (words[i++] == 0)
                                continue;
                        scan->is_broken = true;
                        return;
                default:
                        scan->is_broken = true;
                        return;
                }
                if (n_data > n - i - 1) {
                        scan->is_broken = true;
                        return;
                }
                scan_take(scan, &method, &words[i]);
                i += 1 + n_data;
        }
}
