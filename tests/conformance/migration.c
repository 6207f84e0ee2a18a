/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata, compatibility and the range of versions. */
#include "conformance/rows.h"

#define BLOB (void *)OUT(blob)

void play_migration(struct run *run)
{
        /* clang-format off */
        INSTANCE_ROWS(nvmlVgpuInstanceGetMetadata, BLOB, IN(size, 1024))
        ROW(nvmlVgpuInstanceGetMetadata, INVALID_ARGUMENT, HOST, (FIXTURE_TRAIN, BLOB, NULL))
        ROW(nvmlVgpuInstanceGetMetadata, INVALID_ARGUMENT, HOST, (SCENE_NOBODY, NULL, IN(size, 1024)))
        ROW(nvmlVgpuInstanceGetMetadata, INVALID_ARGUMENT, HOST, (SCENE_NOBODY, NULL, IN(size, 64)), NOW(size) == 64)
        ROW(nvmlVgpuInstanceGetMetadata, INSUFFICIENT_SIZE, HOST, (SCENE_NOBODY, NULL, IN(size, 0)), NOW(size) == 468)
        ROW(nvmlVgpuInstanceGetMetadata, INSUFFICIENT_SIZE, HOST, (FIXTURE_TRAIN, BLOB, IN(size, 212)), NOW(size) == 468)
        ROW(nvmlVgpuInstanceGetMetadata, SUCCESS, HOST, (FIXTURE_TRAIN, BLOB, IN(size, 1024)), NOW(size) == 468)
        ROW(nvmlVgpuInstanceGetMetadata, SUCCESS, HOST, (SCENE_STOPPED, BLOB, IN(size, 468)), NOW(blob)[8] == 0)

        HOSTING_ROWS(nvmlDeviceGetVgpuMetadata, BLOB, IN(size, 1024))
        ROW(nvmlDeviceGetVgpuMetadata, INVALID_ARGUMENT, HOST, (s->bare, BLOB, NULL))
        ROW(nvmlDeviceGetVgpuMetadata, INVALID_ARGUMENT, HOST, (s->device, NULL, IN(size, 1024)))
        ROW(nvmlDeviceGetVgpuMetadata, INVALID_ARGUMENT, HOST, (s->device, NULL, IN(size, 64)), NOW(size) == 64)
        ROW(nvmlDeviceGetVgpuMetadata, INSUFFICIENT_SIZE, HOST, (s->device, NULL, IN(size, 0)), NOW(size) == 384)
        ROW(nvmlDeviceGetVgpuMetadata, SUCCESS, HOST, (s->device, BLOB, IN(size, 1024)), NOW(size) == 384)

        HOSTING_ROWS(nvmlDeviceGetPgpuMetadataString, NOW(text), IN(size, 256))
        ROW(nvmlDeviceGetPgpuMetadataString, INVALID_ARGUMENT, HOST, (s->device, NOW(text), NULL))
        ROW(nvmlDeviceGetPgpuMetadataString, INVALID_ARGUMENT, HOST, (s->device, NULL, IN(size, 256)))
        ROW(nvmlDeviceGetPgpuMetadataString, INVALID_ARGUMENT, HOST, (s->device, NULL, IN(size, 8)), NOW(size) == 8)
        ROW(nvmlDeviceGetPgpuMetadataString, INSUFFICIENT_SIZE, HOST, (s->device, NULL, IN(size, 0)), NOW(size) == 17)
        ROW(nvmlDeviceGetPgpuMetadataString, SUCCESS, HOST, (s->device, NOW(text), IN(size, 256)), NOW(size) == 17)

        ROW(nvmlGetVgpuCompatibility, SUCCESS, HOST, (s->vgpu_blob, s->pgpu_blob, OUT(compatibility)), NOW(compatibility).vgpuVmCompatibility == 15)
        ROW(nvmlGetVgpuCompatibility, INVALID_ARGUMENT, HOST, (NULL, s->pgpu_blob, OUT(compatibility)))
        ROW(nvmlGetVgpuCompatibility, INVALID_ARGUMENT, HOST, (s->vgpu_blob, NULL, OUT(compatibility)))
        ROW(nvmlGetVgpuCompatibility, INVALID_ARGUMENT, HOST, (s->vgpu_blob, s->pgpu_blob, NULL))

        ROW(nvmlGetVgpuVersion, SUCCESS, HOST, (OUT(supported), OUT(current)), NOW(current).maxVersion == FIXTURE_VGPU_VERSION)
        ROW(nvmlGetVgpuVersion, INVALID_ARGUMENT, HOST, (NULL, OUT(current)))
        ROW(nvmlGetVgpuVersion, INVALID_ARGUMENT, HOST, (OUT(supported), NULL))
        ROW(nvmlGetVgpuVersion, NOT_SUPPORTED, GUEST, (OUT(supported), OUT(current)))
        CHANGE_ROWS(nvmlSetVgpuVersion, IN(current, { FIXTURE_VGPU_VERSION, FIXTURE_VGPU_VERSION }))
        ROW(nvmlSetVgpuVersion, IN_USE, BUSY, (IN(current, { FIXTURE_VGPU_VERSION, FIXTURE_VGPU_VERSION })))
        ROW(nvmlSetVgpuVersion, INVALID_ARGUMENT, HOST, (NULL))
        ROW(nvmlSetVgpuVersion, INVALID_ARGUMENT, HOST, (IN(current, { 2, 1 })))
        ROW(nvmlSetVgpuVersion, INVALID_ARGUMENT, HOST, (IN(current, { 1, FIXTURE_VGPU_VERSION })))
        ROW(nvmlSetVgpuVersion, INVALID_ARGUMENT, HOST, (IN(current, { FIXTURE_VGPU_VERSION, 0x20000 })))
        ROW(nvmlSetVgpuVersion, NOT_SUPPORTED, GUEST, (IN(current, { FIXTURE_VGPU_VERSION, FIXTURE_VGPU_VERSION })))
        /* clang-format on */
}
