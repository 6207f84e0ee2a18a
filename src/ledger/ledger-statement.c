/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/ledger-internal.h"

/* So many rows of usage are pruned at a time: others shall get in between. */
#define PRUNE_ROWS "10000"

#define PROCESS_COLUMNS                                                                            \
        "serial, vgpu, pid, start_time, name, started_ms, ended_ms, listed, life_ns,"              \
        " max_memory, sm_ns, memory_ns, encoder_ns, decoder_ns, jpeg_ns, ofa_ns, seen_sm_ns,"      \
        " seen_memory_ns, seen_encoder_ns, seen_decoder_ns, seen_jpeg_ns, seen_ofa_ns, joined_ms," \
        " container, container_name"
#define LIST_PROCESSES "SELECT " PROCESS_COLUMNS " FROM process WHERE "
#define SUM_OF(column) "sum(usage." column "), "
/* clang-format off */
#define SUMS                                                                                       \
        SUM_OF("sm_ns") SUM_OF("memory_ns") SUM_OF("encoder_ns") SUM_OF("decoder_ns")              \
        SUM_OF("jpeg_ns") SUM_OF("ofa_ns") SUM_OF("quota_mib_ms") SUM_OF("used_mib_ms")
/* clang-format on */
#define FROM_USAGE     " FROM usage JOIN vgpu ON vgpu.serial = usage.vgpu "
#define WHERE_USAGE    " WHERE minute >= ? AND minute < ? AND (? < 0 OR vgpu.owner = ?) "
#define ORDER(key)     " GROUP BY " key " ORDER BY " key " LIMIT ? OFFSET ?"

/* Of job-JOB-STEP. */
#define JOB "substr(vgpu.name, 5, instr(substr(vgpu.name, 5), '-') - 1)"

/* What is in the row already stays in it. */
#define ADD_UP                                                                      \
        " ON CONFLICT (minute, vgpu, process, device) DO UPDATE SET"                \
        " sm_ns = sm_ns + excluded.sm_ns,"                                          \
        " memory_ns = memory_ns + excluded.memory_ns,"                              \
        " encoder_ns = encoder_ns + excluded.encoder_ns,"                           \
        " decoder_ns = decoder_ns + excluded.decoder_ns,"                           \
        " jpeg_ns = jpeg_ns + excluded.jpeg_ns, ofa_ns = ofa_ns + excluded.ofa_ns," \
        " quota_mib_ms = quota_mib_ms + excluded.quota_mib_ms,"                     \
        " used_mib_ms = used_mib_ms + excluded.used_mib_ms"

static const char *const texts[STATEMENTS] = {
        [BEGIN] = "BEGIN IMMEDIATE",
        [COMMIT] = "COMMIT",
        [PUT_DEVICE] = "INSERT INTO device (uuid, name) VALUES (?,?)"
                       " ON CONFLICT (uuid) DO UPDATE SET name = excluded.name",
        [GET_DEVICE] = "SELECT id FROM device WHERE uuid = ?",
        [PUT_VGPU] = "INSERT OR REPLACE INTO vgpu (serial, uuid, name, owner) VALUES (?,?,?,?)",
        [HAS_VGPU] = "SELECT 1 FROM vgpu WHERE serial = ?",
        [PUT_PROCESS] = "INSERT OR REPLACE INTO process (" PROCESS_COLUMNS
                        ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [PUT_PART] = "INSERT OR REPLACE INTO process_device VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [DROP_PROCESS] = "DELETE FROM process WHERE serial = ?",
        [ADD_USAGE] = "INSERT INTO usage VALUES (?,?,?,?,?,?,?,?,?,?,?,?)" ADD_UP,
        [FOLD_USAGE] = "INSERT INTO usage SELECT minute, vgpu, ?, device, sm_ns, memory_ns,"
                       " encoder_ns, decoder_ns, jpeg_ns, ofa_ns, quota_mib_ms, used_mib_ms"
                       " FROM usage WHERE minute = ? AND vgpu = ? AND process = ?" ADD_UP,
        [DROP_USAGE] = "DELETE FROM usage WHERE minute = ? AND vgpu = ? AND process = ?",
        /* What is of no process stays so. */
        [FOLD_VGPU_USAGE] = "INSERT INTO usage SELECT minute, ?, min(process, 1), device, sm_ns,"
                            " memory_ns, encoder_ns, decoder_ns, jpeg_ns, ofa_ns, quota_mib_ms,"
                            " used_mib_ms FROM usage WHERE minute = ? AND vgpu = ?" ADD_UP,
        [DROP_VGPU_USAGE] = "DELETE FROM usage WHERE minute = ? AND vgpu = ?",
        [DROP_VGPU_PROCESSES] = "DELETE FROM process WHERE vgpu = ?",
        [DROP_VGPU] = "DELETE FROM vgpu WHERE serial = ?",
        [CLEAR_LIST] = "UPDATE process SET listed = 0 WHERE vgpu = ? AND ended_ms > 0"
                       " AND ended_ms <= ?",
        [PUT_WALL] = "INSERT OR REPLACE INTO wall (id, boot, steady_ms, wall_ms) VALUES (1,?,?,?)",
        [GET_WALL] = "SELECT steady_ms, wall_ms, boot = ? FROM wall",
        [LIST_ENDED] =
                "SELECT * FROM (" LIST_PROCESSES
                "vgpu = ? AND ended_ms > 0 AND listed ORDER BY ended_ms DESC, serial DESC LIMIT ?)"
                " ORDER BY ended_ms, serial",
        [LIST_RUNNING] = LIST_PROCESSES "ended_ms = 0 ORDER BY serial",
        [LIST_PARTS] = "SELECT * FROM process_device WHERE process = ?",
        [LIST_RUNNING_PARTS] = "SELECT process_device.* FROM process_device JOIN process"
                               " ON process.serial = process_device.process WHERE ended_ms = 0",
        [PRUNE_USAGE] = "DELETE FROM usage WHERE (minute, vgpu, process, device) IN (SELECT"
                        " minute, vgpu, process, device FROM usage WHERE minute < ?"
                        " LIMIT " PRUNE_ROWS ")",
        [PRUNE_PROCESSES] = "DELETE FROM process WHERE ended_ms > 0 AND ended_ms < ?",
        [PRUNE_VGPUS] = "DELETE FROM vgpu WHERE serial NOT IN (SELECT vgpu FROM usage)",
        [SUM + LEDGER_BY_TENANT] =
                "SELECT " SUMS "vgpu.owner" FROM_USAGE WHERE_USAGE ORDER("vgpu.owner"),
        [SUM + LEDGER_BY_VGPU] =
                "SELECT " SUMS
                "vgpu.owner, vgpu.serial, vgpu.uuid, vgpu.name" FROM_USAGE WHERE_USAGE ORDER(
                        "vgpu.serial"),
        [SUM + LEDGER_BY_PROCESS] =
                "SELECT " SUMS
                "vgpu.owner, vgpu.serial, vgpu.uuid, vgpu.name, usage.process, process.pid,"
                " process.name, process.started_ms, process.ended_ms" FROM_USAGE
                "LEFT JOIN process ON process.serial = usage.process" WHERE_USAGE
                "AND usage.process > 0" ORDER("usage.process, usage.vgpu"),
        [SUM + LEDGER_BY_DEVICE] =
                "SELECT " SUMS "0, device.uuid, device.name" FROM_USAGE
                "JOIN device ON device.id = usage.device" WHERE_USAGE ORDER("device.uuid"),
        [SUM + LEDGER_BY_JOB] =
                "SELECT " SUMS "vgpu.owner, " JOB ", max(ifnull(process.max_memory, 0))" FROM_USAGE
                "LEFT JOIN process ON process.serial = usage.process" WHERE_USAGE
                "AND vgpu.name GLOB 'job-[0-9]*-?*' AND " JOB " NOT GLOB '*[^0-9]*'"
                " GROUP BY vgpu.owner, " JOB " ORDER BY vgpu.owner, CAST(" JOB
                " AS INTEGER) LIMIT ? OFFSET ?",
        [SUM + LEDGER_BY_CONTAINER] =
                "SELECT " SUMS "vgpu.owner, process.container, max(process.container_name),"
                " max(process.max_memory)" FROM_USAGE
                "JOIN process ON process.serial = usage.process" WHERE_USAGE
                "AND process.container != ''" ORDER("vgpu.owner, process.container"),
        [SUM + LEDGER_BY_PART] =
                "SELECT " SUMS "vgpu.owner, vgpu.serial, vgpu.uuid, vgpu.name, device.uuid,"
                " device.name" FROM_USAGE
                "JOIN device ON device.id = usage.device" WHERE_USAGE ORDER(
                        "vgpu.serial, device.uuid"),
};

int ledger_prepare(struct ledger *ledger, enum statement which, sqlite3_stmt **ret_statement)
{
        return database_prepare(&ledger->database, ret_statement, texts[which]);
}

int ledger_run(struct ledger *ledger, enum statement which)
{
        sqlite3_stmt *statement;
        int r = ledger_prepare(ledger, which, &statement);

        return r < 0 ? r : database_step(statement);
}
