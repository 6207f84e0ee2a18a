/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/listing.h"

#include "cli/document.h"
#include "cli/say.h"

void listing_init(struct listing *listing, const struct column *columns)
{
        table_init(&listing->table, columns);
        listing->array = json_array();
}

void listing_deinit(struct listing *listing)
{
        table_deinit(&listing->table);
        json_decref(listing->array);
        listing->array = NULL;
}

int listing_print(const struct listing *listing, const struct arguments *arguments, const char *key,
                  int code)
{
        bool is_empty = listing->table.n_cells == 0 && json_array_size(listing->array) == 0;
        int r;

        if (code != 0 && is_empty)
                return code;
        if (arguments->is_json)
                r = document_print(arguments, json_pack("{sO}", key, listing->array));
        else if (table_print(&listing->table) < 0)
                r = say_failure(arguments, EXIT_CODE_FAILED, "OutOfMemory", "", "out of memory");
        else
                r = 0;
        return code != 0 ? code : r;
}
