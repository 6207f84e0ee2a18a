/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_ANSWERS_H
#define FAKE_ANSWERS_H

/* Good answers for the fake manager, to be used as they are or to be spoilt. */

#define ANSWER(parameters) "{'parameters':{" parameters "}}"
#define PROGRESS(stage, done, total)                                                           \
        "{'parameters':{'stage':'" stage "','bytes_done':" #done ",'bytes_total':" #total "}," \
        "'continues':true}"
#define REFUSAL(name, message, hint) \
        "{'error':'org.openvgpu." name "','parameters':{'message':'" message "','hint':'" hint "'}}"

#define DEVICE_0                                                                             \
        "{'index':0,'uuid':'GPU-11111111-2222-3333-4444-555555555555','name':'NVIDIA H200'," \
        "'pci_bus_id':'00000000:3B:00.0','memory_total':150754820096,"                       \
        "'memory_promised':42949672960,'memory_used':34145055539,'vgpus':1}"
#define DEVICE_1                                                                             \
        "{'index':1,'uuid':'GPU-66666666-7777-8888-9999-000000000000','name':'NVIDIA H200'," \
        "'pci_bus_id':'00000000:5E:00.0','memory_total':150754820096,"                       \
        "'memory_promised':0,'memory_used':0,'vgpus':0}"

#define PROCESS                                                   \
        "{'pid':4711,'name':'python3','memory_used':34145055539," \
        "'memory_movable':34143955539,'launches':120034}"
#define VGPU(name, state, used, processes)                                                      \
        "{'id':7,'name':'" name "','uuid':'0a1b2c3d-0000-4000-8000-00000000000a','device':0,"   \
        "'device_uuid':'GPU-11111111-2222-3333-4444-555555555555','state':'" state "',"         \
        "'frame_buffer':42949672960,'frame_buffer_used':" #used ",'transient':false,'owner':0," \
        "'created':1764000000,'processes':[" processes "]}"
#define TRAIN           VGPU("train", "running", 34145055539, PROCESS)
#define TRAIN_SUSPENDED VGPU("train", "suspended", 34145055539, PROCESS)
#define TRAIN_IDLE      VGPU("train", "idle", 0, "")

#define REPORT(vgpu, from, to)                                                            \
        "'vgpu':" vgpu ",'bytes':34145055539,'seconds':0.67,'copy_seconds':0.655,"        \
        "'context_seconds':0.35,'drain_seconds':0.004,'processes':1,'from_device':" #from \
        ",'to_device':" #to

#define PERCENTS(gpu_, memory_, encoder_)                                            \
        "'gpu':" #gpu_ ",'memory':" #memory_ ",'encoder':" #encoder_ ",'decoder':0," \
        "'jpeg':0,'ofa':0"
#define SECONDS(gpu_)                                                          \
        "'gpu_seconds':" #gpu_ ",'memory_seconds':60.0,'encoder_seconds':0.0," \
        "'decoder_seconds':0.0,'jpeg_seconds':0.0,'ofa_seconds':0.0"
#define USE_DEVICE_0                                                                               \
        "{'index':0,'uuid':'GPU-11111111-2222-3333-4444-555555555555','name':'NVIDIA H200',"       \
        "'source':'turns','memory_total':150754820096,'memory_used':34145055539," PERCENTS(98, 45, \
                                                                                           3) "}"
#define USE_PROCESS(pid_, name_, gpu_)    \
        "{'pid':" #pid_ ",'name':'" name_ \
        "','memory_used':17072527769," PERCENTS(gpu_, 20, 3) "," SECONDS(1862.75) "}"
#define USE_TRAIN                                                                                \
        "{'name':'train','uuid':'0a1b2c3d-0000-4000-8000-00000000000a','device':0,"              \
        "'state':'running','frame_buffer':42949672960,'frame_buffer_used':34145055539,"          \
        "'entitled':75.0," PERCENTS(74, 40, 3) "," SECONDS(3725.5) ",'processes':[" USE_PROCESS( \
                4711, "python3", 50) "," USE_PROCESS(4712, "worker", 24) "]}"
#define USE_SERVE_WITHOUT_PROCESSES                                                 \
        "{'name':'serve','uuid':'0a1b2c3d-0000-4000-8000-00000000000b','device':0," \
        "'state':'suspended','frame_buffer':42949672960,'frame_buffer_used':0,"     \
        "'entitled':0," PERCENTS(0, 0, 0) "," SECONDS(12) "}"
#define USE_SERVE                                                                   \
        "{'name':'serve','uuid':'0a1b2c3d-0000-4000-8000-00000000000b','device':0," \
        "'state':'suspended','frame_buffer':42949672960,'frame_buffer_used':0,"     \
        "'entitled':0," PERCENTS(0, 0, 0) "," SECONDS(12) ",'processes':[]}"
#define UTILIZATION "'devices':[" USE_DEVICE_0 "],'vgpus':[" USE_TRAIN "," USE_SERVE "]"

#define ACCOUNT_OF(id_, pid_, running_)                                                       \
        "{'id':" #id_ ",'pid':" #pid_ ",'name':'python3','running':" #running_                \
        ",'started':1764000000.5,'seconds':6000,'gpu_utilization':62,'memory_utilization':1," \
        "'memory_peak':34145055539," SECONDS(3725.5) "}"
#define ACCOUNT       ACCOUNT_OF(1764000000500000000, 4711, true)
#define ACCOUNT_ENDED ACCOUNT_OF(1763000000500000000, 4000, false)

#define USAGE_TENANT \
        "{'tenant':1000," SECONDS(86400.25) ",'quota_gib_hours':960.0,'used_gib_hours':480.5}"
#define USAGE_PROCESS                                                                    \
        "{'tenant':0,'vgpu':'train','vgpu_uuid':'0a1b2c3d-0000-4000-8000-00000000000a'," \
        "'pid':4711,'name':'a,\\'b\\'','started':1764000000.5,'ended':0.0," SECONDS(     \
                3600) ",'quota_gib_hours':0.0,'used_gib_hours':1.25}"

#define INFO                                                                           \
        "'version':'0.1.0','simulated':false,'cuda_driver_version':13000,"             \
        "'driver_path':'/usr/lib/x86_64-linux-gnu/libcuda.so.1',"                      \
        "'gate_path':'/usr/lib/openvgpu/gate/libcuda.so.1',"                           \
        "'nvml_path':'/usr/lib/openvgpu/nvml','run_directory':'/run/openvgpu',"        \
        "'pool':{'limit':68719476736,'size':38654705664,'ready':38654705664,'used':0," \
        "'slab_size':268435456}"

#endif
