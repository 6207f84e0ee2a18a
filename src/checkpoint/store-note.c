/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store-note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const states[] = {
        [STORE_RESERVED] = "reserved", [STORE_SAVED] = "saved", [STORE_LOST] = "lost"
};

static int print(const struct store *store, enum store_state state, const char *path,
                 const char *mode)
{
        FILE *file = fopen(path, mode);

        if (!file)
                return -errno;
        fprintf(file, "state %s\nplace %d\ngeneration %016" PRIx64 "\ndirectory %s\n",
                states[state], (int)store->place, store->generation, store->path);
        for (unsigned int i = 0; i < store->n_parts; i++)
                fprintf(file, "part %s %" PRIu64 "\n", store->part[i].uuid, store->part[i].size);
        fputs("end\n", file);
        if (ferror(file)) {
                (void)fclose(file);
                return -EIO;
        }
        return fclose(file) == 0 ? 0 : -errno;
}

/*
 * Where there is no room for a second one beside it, the note is written over: a full disk in the middle
 * of an operation must not cost a process its life. What follows "end" is of no account.
 */
int store_note_write(struct store *store, enum store_state state)
{
        char beside[PATHS_MAX + 8];
        int r;

        snprintf(beside, sizeof(beside), "%s.new", store->note);
        r = print(store, state, beside, "we");
        if (r == 0 && rename(beside, store->note) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(beside);
                if (print(store, state, store->note, "r+e") < 0)
                        return r;
        }
        store->state = state;
        return 0;
}

static void take_state(struct store *store, const char *word)
{
        for (enum store_state i = STORE_RESERVED; i <= STORE_LOST; i++)
                if (strcmp(states[i], word) == 0)
                        store->state = i;
}

static void take_part(struct store *store, const char *text)
{
        struct store_part part = { 0 };

        if (store->n_parts < CHECKPOINT_PAIRS_MAX &&
            sscanf(text, "%40s %" SCNu64, part.uuid, &part.size) == 2)
                store->part[store->n_parts++] = part;
}

/* True: it is the last line. */
static bool take_line(struct store *store, char *line)
{
        char *value;

        line[strcspn(line, "\n")] = '\0';
        value = strchr(line, ' ');
        if (!value)
                return strcmp(line, "end") == 0;
        *value++ = '\0';
        if (strcmp(line, "state") == 0)
                take_state(store, value);
        else if (strcmp(line, "place") == 0)
                store->place = atoi(value) == VGPU_CHECKPOINT_STORAGE_MEMORY
                                       ? VGPU_CHECKPOINT_STORAGE_MEMORY
                                       : VGPU_CHECKPOINT_STORAGE_DIRECTORY;
        else if (strcmp(line, "generation") == 0)
                store->generation = strtoull(value, NULL, 16);
        else if (strcmp(line, "directory") == 0)
                snprintf(store->path, sizeof(store->path), "%s", value);
        else if (strcmp(line, "part") == 0)
                take_part(store, value);
        return false;
}

int store_note_read(struct store *store, const char *path)
{
        CLEANUP(freep) char *line = NULL;
        FILE *file = fopen(path, "re");
        bool is_whole = false;
        size_t room = 0;

        *store = STORE_INIT;
        if (!file)
                return -ENOENT;
        snprintf(store->note, sizeof(store->note), "%s", path);
        while (!is_whole && getline(&line, &room, file) > 0)
                is_whole = take_line(store, line);
        fclose(file);
        if (is_whole && store->state != STORE_NONE)
                return 0;
        *store = STORE_INIT;
        return -EBADMSG;
}
