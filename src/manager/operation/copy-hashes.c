/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/copy-hashes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/options.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/copy-way.h"
#include "manager/operation/job-lists.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

bool copy_hashes_must_verify(const struct operation *operation)
{
        return operation->request.must_verify ||
               operation->instance->manager->options->clean_copies == OPTIONS_CLEAN_COPIES_VERIFY;
}

/*
 * What goes out is hashed, so that it need not go out again. Not at the second try: what ended the first
 * mover may have been that. And not what is only a part of the guest's memory.
 */
int copy_hashes_begin(struct guest *guest)
{
        const struct operation *operation = guest->instance->operation;
        enum options_clean_copies how = operation->instance->manager->options->clean_copies;

        guest->participant->copy.hashes = NULL;
        if (how == OPTIONS_CLEAN_COPIES_OFF || guest->participant->copy.n < guest->n_memory ||
            operation->is_undoing || operation->was_retried)
                clean_copy_spoil(guest);
        else
                guest->participant->copy.hashes =
                        clean_copy_begin(guest, copy_hashes_must_verify(operation),
                                         &guest->participant->copy.n_hashes);
        return 0;
}

/* Of blocks that others hold the guest's own have nothing: they are copied. */
int copy_hashes_begin_live(struct guest *guest)
{
        guest->participant->copy.n_live_bytes = 0;
        guest->participant->copy.hashes =
                clean_copy_begin(guest, true, &guest->participant->copy.n_hashes);
        return guest->participant->copy.hashes ? 0 : -EOPNOTSUPP;
}

/* The job's part of them: those of its own blocks. */
static void pass_hashes(struct guest_job *job, bool is_back)
{
        const struct guest *guest = job->guest;
        struct hash_value *whole = guest->participant->copy.hashes, *part = job->hashes;

        for (size_t i = 0; i < guest->n_memory; i++) {
                size_t n = guest->memory[i].size / HASH_BLOCK;

                if (job_lists_has(job, i)) {
                        memcpy(is_back ? whole : part, is_back ? part : whole, n * sizeof(*part));
                        part += n;
                }
                whole += n;
        }
}

int copy_hashes_tell(struct guest_job *own, struct mover_job *job, const struct job_lists *lists)
{
        size_t n = 0;

        if (!own->guest->participant->copy.hashes)
                return 0;
        for (size_t i = 0; i < lists->n; i++)
                n += lists->sizes[i] / HASH_BLOCK;
        free(own->hashes);
        own->hashes = calloc(n, sizeof(*own->hashes));
        if (!own->hashes)
                return -ENOMEM;
        pass_hashes(own, false);
        job->must_verify = !own->guest->participant->copy.way->is_live &&
                           copy_hashes_must_verify(own->guest->instance->operation);
        job->hashes = own->hashes;
        job->n_hashes = n;
        return 0;
}

/* It has copied all of its blocks. What another device has told of its own is true nevertheless. */
static void forget_hashes(struct guest_job *job, int error)
{
        struct guest *guest = job->guest;

        guest->participant->copy.has_no_hashes = true;
        for (size_t i = 0; i < job->n_hashes; i++)
                job->hashes[i] = HASH_UNKNOWN;
        log_event_of(guest->payer, LOG_LEVEL_WARNING,
                     "copied all memory: the device cannot tell what has not changed",
                     "vgpu=%s pid=%d device=%u error=\"%s\"", guest->instance->name,
                     (int)guest->pid, job->device->index, strerror(-error));
}

void copy_hashes_note(struct guest_job *job, const struct mover_done *done)
{
        struct guest *guest = job->guest;
        struct operation *operation = guest->instance->operation;

        operation->measured.bytes_unchanged += done->unchanged;
        if (done->hash_error)
                forget_hashes(job, done->hash_error);
        else
                guest->participant->copy.is_compared = true;
        pass_hashes(job, true);
        if (done->wrong > 0) /* a mistake of ours: it is always told */
                log_event(
                        LOG_LEVEL_ERROR,
                        "memory that had changed was taken for unchanged; it was copied after all",
                        "vgpu=%s pid=%d bytes=%" PRIu64, operation->instance->name, (int)guest->pid,
                        done->wrong);
}

void copy_hashes_note_live(struct guest_job *job, const struct mover_done *done)
{
        job->guest->participant->copy.n_live_bytes += done->bytes - done->unchanged;
        pass_hashes(job, true);
}
