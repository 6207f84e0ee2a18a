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

#define INFO                                                                           \
        "'version':'0.1.0','simulated':false,'cuda_driver_version':13000,"             \
        "'driver_path':'/usr/lib/x86_64-linux-gnu/libcuda.so.1',"                      \
        "'gate_path':'/usr/lib/openvgpu/gate/libcuda.so.1',"                           \
        "'nvml_path':'/usr/lib/openvgpu/nvml','run_directory':'/run/openvgpu',"        \
        "'pool':{'limit':68719476736,'size':38654705664,'ready':38654705664,'used':0," \
        "'slab_size':268435456,'huge_pages':38654705664}"

#endif
