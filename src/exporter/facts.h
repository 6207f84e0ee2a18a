/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_FACTS_H
#define EXPORTER_FACTS_H

/*
 * Facts: what vgpud says on the state page (state/state-page.h, state/monitor.h) at one moment, in the
 * form of the library's answers. vgpud is asked nothing: it has no work with however many read.
 */

#include <openvgpu/manager.h>
#include <openvgpu/statistics.h>
#include <openvgpu/time-sharing.h>
#include <openvgpu/usage.h>

struct facts_reader;

/* facts_reader_new() - opens nothing yet */
int facts_reader_new(struct facts_reader **ret_reader);
struct facts_reader *facts_reader_free(struct facts_reader *reader);

/* Not all members of the library's structs: what metrics and the page need. */
struct facts {
        struct vgpu_usage_snapshot snapshot;
        struct vgpu_manager manager;
        struct vgpu_statistics statistics;
};

/*
 * facts_read() - as of now
 * @ret_facts:  freed by the caller with facts_free()
 *
 * Errors: -ENOENT, no vgpud runs, or it begins; -EACCES, not to be believed; -EPROTONOSUPPORT, it is of
 * another version; -EPROTO; -ENOMEM.
 */
int facts_read(struct facts_reader *reader, bool has_processes, struct facts **ret_facts);
struct facts *facts_free(struct facts *facts);

/* facts_explain() - one line for an error of facts_read() */
const char *facts_explain(int error);

/*
 * facts_read_turns() - the scheduler's log of a device from turn @from on, without names; after facts_read()
 *
 * Freed by the caller with free(). NULL: there is none, or no memory.
 */
struct vgpu_time_sharing_log *facts_read_turns(const struct facts_reader *reader, uint32_t device,
                                               uint64_t from);

#endif
