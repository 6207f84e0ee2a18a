/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses a vGPU: processes, sessions, accounts. */

#include "scenario/parse.h"

static int parse_percent(struct reader *reader, const json_t *value, void *to)
{
        int r = curve_read(reader, value, to);

        if (r == 0 && curve_max(to) > 100)
                return reader_fail(reader, "is above 100 percent");
        return r;
}

#define PERCENT(what)                                                      \
        {                                                                  \
                .name = #what, .kind = FIELD_OTHER, .read = parse_percent, \
                .offset = offsetof(struct scenario_utilization, what)      \
        }

int parse_utilization(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                PERCENT(gpu), PERCENT(memory), PERCENT(encoder), PERCENT(decoder), PERCENT(jpeg),
                PERCENT(ofa), { 0 },
        };

        return reader_fields(reader, value, fields, to);
}

#define PROCESS(member) .offset = offsetof(struct scenario_process, member)

int parse_processes(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice kinds[] = { { "compute", STATE_COMPUTE },
                                               { "graphics", STATE_GRAPHICS },
                                               { "both", STATE_COMPUTE | STATE_GRAPHICS },
                                               { 0 } };
        static const struct field fields[] = {
                { .name = "pid",
                  .kind = FIELD_NUMBER,
                  .is_required = true,
                  .min = 1,
                  PROCESS(pid) },
                { .name = "name",
                  .kind = FIELD_TEXT,
                  .is_required = true,
                  .size = STATE_NAME_MAX,
                  PROCESS(name) },
                { .name = "kind", .kind = FIELD_CHOICE, .choices = kinds, PROCESS(kind) },
                { .name = "from", .kind = FIELD_SECONDS, PROCESS(life.from) },
                { .name = "until", .kind = FIELD_SECONDS, PROCESS(life.until) },
                { .name = "memory", .kind = FIELD_OTHER, .read = curve_read_size, PROCESS(memory) },
                { .name = "utilization",
                  .kind = FIELD_OBJECT,
                  .read = parse_utilization,
                  PROCESS(utilization) },
                { 0 },
        };
        struct scenario_vgpu *vgpu = to;
        struct scenario_process *process =
                reader_grow((void **)&vgpu->processes, &vgpu->n_processes, sizeof(*process));

        if (!process)
                return reader_fail(reader, "out of memory");
        process->kind = STATE_COMPUTE;
        return reader_fields(reader, value, fields, process);
}

#define ENCODER(member) .offset = offsetof(struct scenario_encoder_session, member)

int parse_encoder_session(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice codecs[] = {
                { "H.264", 0 }, { "HEVC", 1 }, { "AV1", 2 }, { "unknown", 255 }, { 0 }
        };
        static const struct field fields[] = {
                { .name = "id", .kind = FIELD_NUMBER, .is_required = true, ENCODER(record.id) },
                { .name = "pid",
                  .kind = FIELD_NUMBER,
                  .is_required = true,
                  .min = 1,
                  ENCODER(record.pid) },
                { .name = "codec", .kind = FIELD_CHOICE, .choices = codecs, ENCODER(record.codec) },
                { .name = "width", .kind = FIELD_NUMBER, .max = 32768, ENCODER(record.width) },
                { .name = "height", .kind = FIELD_NUMBER, .max = 32768, ENCODER(record.height) },
                { .name = "fps", .kind = FIELD_OTHER, .read = curve_read, ENCODER(fps) },
                { .name = "latency", .kind = FIELD_OTHER, .read = curve_read, ENCODER(latency) },
                { .name = "from", .kind = FIELD_SECONDS, ENCODER(life.from) },
                { .name = "until", .kind = FIELD_SECONDS, ENCODER(life.until) },
                { 0 },
        };
        struct scenario_vgpu *vgpu = to;
        struct scenario_encoder_session *session = reader_grow(
                (void **)&vgpu->encoder_sessions, &vgpu->n_encoder_sessions, sizeof(*session));

        if (!session)
                return reader_fail(reader, "out of memory");
        session->record.width = 1920;
        session->record.height = 1080;
        return reader_fields(reader, value, fields, session);
}

/* Flags are a list of words. */
static int parse_flag(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice flags[] = {
                { "difference map", 1 }, { "classification map", 2 }, { "no wait", 4 },
                { "wait for ever", 8 },  { "wait with timeout", 16 }, { 0 },
        };
        struct scenario_capture_session *session = to;
        uint32_t flag = 0;
        int r = reader_choice(reader, value, flags, &flag);

        session->record.flags |= flag;
        return r;
}

#define CAPTURE(member) .offset = offsetof(struct scenario_capture_session, member)

int parse_capture_session(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice kinds[] = { { "unknown", 0 }, { "system memory", 1 },
                                               { "CUDA", 2 },    { "video", 3 },
                                               { "encoder", 4 }, { 0 } };
        static const struct field fields[] = {
                { .name = "id", .kind = FIELD_NUMBER, .is_required = true, CAPTURE(record.id) },
                { .name = "pid",
                  .kind = FIELD_NUMBER,
                  .is_required = true,
                  .min = 1,
                  CAPTURE(record.pid) },
                { .name = "display", .kind = FIELD_NUMBER, .max = 64, CAPTURE(record.display) },
                { .name = "kind", .kind = FIELD_CHOICE, .choices = kinds, CAPTURE(record.kind) },
                { .name = "flags", .kind = FIELD_LIST, .read = parse_flag },
                { .name = "max_width",
                  .kind = FIELD_NUMBER,
                  .max = 32768,
                  CAPTURE(record.max_width) },
                { .name = "max_height",
                  .kind = FIELD_NUMBER,
                  .max = 32768,
                  CAPTURE(record.max_height) },
                { .name = "width", .kind = FIELD_NUMBER, .max = 32768, CAPTURE(record.width) },
                { .name = "height", .kind = FIELD_NUMBER, .max = 32768, CAPTURE(record.height) },
                { .name = "fps", .kind = FIELD_OTHER, .read = curve_read, CAPTURE(fps) },
                { .name = "latency", .kind = FIELD_OTHER, .read = curve_read, CAPTURE(latency) },
                { .name = "from", .kind = FIELD_SECONDS, CAPTURE(life.from) },
                { .name = "until", .kind = FIELD_SECONDS, CAPTURE(life.until) },
                { 0 },
        };
        struct scenario_vgpu *vgpu = to;
        struct scenario_capture_session *session = reader_grow(
                (void **)&vgpu->capture_sessions, &vgpu->n_capture_sessions, sizeof(*session));

        if (!session)
                return reader_fail(reader, "out of memory");
        session->record.max_width = 4096;
        session->record.max_height = 4096;
        return reader_fields(reader, value, fields, session);
}

#define ACCOUNT(member) .offset = offsetof(struct state_account, member)

int parse_account(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "pid",
                  .kind = FIELD_NUMBER,
                  .is_required = true,
                  .min = 1,
                  ACCOUNT(pid) },
                { .name = "gpu", .kind = FIELD_NUMBER, .max = 100, ACCOUNT(utilization_gpu) },
                { .name = "memory", .kind = FIELD_NUMBER, .max = 100, ACCOUNT(utilization_memory) },
                { .name = "max_memory", .kind = FIELD_SIZE, ACCOUNT(max_memory) },
                { .name = "time_ms", .kind = FIELD_LARGE, ACCOUNT(time_ms) },
                { .name = "start_us", .kind = FIELD_LARGE, ACCOUNT(start_us) },
                { 0 },
        };
        struct scenario_vgpu *vgpu = to;
        struct state_account *account =
                reader_grow((void **)&vgpu->accounts, &vgpu->n_accounts, sizeof(*account));

        if (!account)
                return reader_fail(reader, "out of memory");
        account->utilization_gpu = STATE_NONE;
        account->utilization_memory = STATE_NONE;
        return reader_fields(reader, value, fields, account);
}
