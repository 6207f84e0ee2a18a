/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "base/size.h"
#include "checkpoint/driver.h"
#include "checkpoint/note.h"
#include "checkpoint/nvml.h"

/* Bytes of each device, in the order of the job's list. */
struct need {
        uint64_t bytes[CHECKPOINT_PAIRS_MAX];
};

static void write_note(const struct job *job, int pid, const struct need *need)
{
        char path[PATHS_MAX], uuid[DEVICE_UUID_MAX];
        FILE *file;

        if (note_path(path, pid, true) < 0)
                return;
        file = fopen(path, "we");
        if (!file)
                return;
        for (unsigned int i = 0; i < job->devices.n; i++)
                if (need->bytes[i] > 0)
                        fprintf(file, "%s %" PRIu64 "\n",
                                device_format_uuid(uuid, &job->devices.device[i].uuid),
                                need->bytes[i]);
        fclose(file);
}

static void add_need(const struct job *job, struct need *need, const char *uuid, uint64_t bytes)
{
        char text[DEVICE_UUID_MAX];

        for (unsigned int i = 0; i < job->devices.n; i++)
                if (strcasecmp(device_format_uuid(text, &job->devices.device[i].uuid), uuid) == 0)
                        need->bytes[i] += bytes;
}

/* What process @pid needs, where it was. False: nobody has noted it. */
static bool read_note(const struct job *job, int pid, struct need *ret_need)
{
        char path[PATHS_MAX], uuid[64];
        uint64_t bytes;
        FILE *file;

        if (note_path(path, pid, false) < 0)
                return false;
        file = fopen(path, "re");
        if (!file)
                return false;
        while (fscanf(file, "%63s %" SCNu64, uuid, &bytes) == 2)
                add_need(job, ret_need, uuid, bytes);
        fclose(file);
        return true;
}

/* Reads what process @i uses on each of the job's devices. Returns the sum; 0: not known. */
static uint64_t read_used(struct job *job, int i, uint64_t *bytes)
{
        char uuid[DEVICE_UUID_MAX];
        uint64_t sum = 0;

        if (!job_read_devices(job))
                return 0;
        for (unsigned int d = 0; d < job->devices.n; d++) {
                bytes[d] = nvml_get_used(device_format_uuid(uuid, &job->devices.device[d].uuid),
                                         job->answer.process[i].pid);
                sum += bytes[d];
        }
        return sum;
}

/* Of an H200: with 6 MiB a checkpoint succeeds, with 4 it fails. Small simulated devices need a small part. */
#define ROOM      (8 * MIB)
#define ROOM_PART 128

/* Those of the job that are there may be checkpointed side by side. */
static uint64_t count_there(const struct job *job, const char *uuid)
{
        uint64_t n = 0;

        for (uint32_t i = 0; i < job->answer.n_processes; i++)
                n += job->answer.process[i].state != CU_PROCESS_STATE_CHECKPOINTED &&
                     nvml_get_used(uuid, job->answer.process[i].pid) > 0;
        return n;
}

static int check_room(struct job *job, int i, unsigned int d)
{
        uint64_t part = job->devices.device[d].memory / ROOM_PART, needed, left;
        char uuid[DEVICE_UUID_MAX], wants[SIZE_TEXT_MAX], has[SIZE_TEXT_MAX];

        device_format_uuid(uuid, &job->devices.device[d].uuid);
        needed = (part < ROOM ? part : ROOM) * count_there(job, uuid);
        if (nvml_get_free(&left, uuid) < 0 || left >= needed)
                return 0;
        return job_fail(
                job, i, VGPU_CHECKPOINT_ERROR_NO_ROOM, "", CUDA_SUCCESS,
                "free some memory there; --force tries the checkpoint as it is",
                "device %u (%s) has %s left and the checkpoint needs %s: it was not tried, because the driver never checkpoints a process again for which it had too little",
                d, uuid, size_format(has, left), size_format(wants, needed));
}

int memory_note(struct job *job, int i)
{
        struct checkpoint_wire_process *process = &job->answer.process[i];
        struct need need = { { 0 } };

        process->bytes = read_used(job, i, need.bytes);
        for (unsigned int d = 0; d < job->devices.n; d++)
                if (need.bytes[d] > 0 && !(job->request->flags & CHECKPOINT_FORCED) &&
                    check_room(job, i, d) < 0)
                        return -1;
        if (process->bytes > 0)
                write_note(job, process->pid, &need);
        return 0;
}

void memory_forget(const struct job *job, int i)
{
        char path[PATHS_MAX];

        if (note_path(path, job->answer.process[i].pid, false) == 0)
                (void)unlink(path);
}

static int check_device(struct job *job, unsigned int d, uint64_t needed)
{
        char uuid[DEVICE_UUID_MAX], lacks[SIZE_TEXT_MAX], wants[SIZE_TEXT_MAX], has[SIZE_TEXT_MAX];
        char hint[128];
        uint64_t left;

        device_format_uuid(uuid, &job->devices.device[d].uuid);
        if (needed == 0 || nvml_get_free(&left, uuid) < 0 || left >= needed)
                return 0;
        snprintf(hint, sizeof(hint), "free %s there, or restore on another device",
                 size_format(lacks, needed - left));
        return job_fail(
                job, -1, VGPU_CHECKPOINT_ERROR_NO_ROOM, "", CUDA_SUCCESS, hint,
                "device %u (%s) has %s left and the restore needs %s: the restore was not tried, because the driver does not survive its failure",
                d, uuid, size_format(has, left), size_format(wants, needed));
}

int memory_check(struct job *job)
{
        struct need need = { { 0 } };

        if (!job_read_devices(job))
                return 0;
        for (uint32_t i = 0; i < job->answer.n_processes; i++) {
                struct checkpoint_wire_process *process = &job->answer.process[i];
                struct need was = { { 0 } };

                if (process->state != CU_PROCESS_STATE_CHECKPOINTED ||
                    !read_note(job, process->pid, &was))
                        continue;
                process->bytes = 0;
                for (unsigned int d = 0; d < job->devices.n; d++) {
                        need.bytes[job->pairs.n && !job->is_undoing ? job->pairs.to[d] : d] +=
                                was.bytes[d];
                        process->bytes += was.bytes[d];
                }
        }
        for (unsigned int d = 0; d < job->devices.n; d++)
                if (check_device(job, d, need.bytes[d]) < 0)
                        return -1;
        return 0;
}
