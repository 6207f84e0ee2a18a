-- SPDX-License-Identifier: Apache-2.0
-- Slurm counts the GPU memory of --vgpu: with this file as /etc/slurm/cli_filter.lua and CliFilterPlugins=cli_filter/lua,
-- sbatch, salloc and srun ask for the GRES vgpu, as much as their --vgpu says. docs/slurm.md

-- The type of the GRES for each partition, as in 'openvgpu-slurm-node --tiers low,high'; that of the default partition.
local tiers = { low = "low", high = "high" }
local default_tier = "low"

local units = { [""] = 1, K = 2 ^ 10, M = 2 ^ 20, G = 2 ^ 30, T = 2 ^ 40 }

-- "1.5G:share=25" in MiB, rounded up; nil: the plugin says what is wrong with it.
local function parse_size(text)
    local number, unit = string.match(string.upper(text), "^([%d.]+)([KMGT]?)I?B?$")
    number = tonumber(number)
    return number and math.ceil(number * units[unit] / 2 ^ 20)
end

-- Slurm's word for "not given" may be a number below zero.
local function positive(value)
    local number = tonumber(string.match(value or "", "^%d+"))
    return number and number > 0 and number or nil
end

-- Tasks on one node, at most, if each has a vGPU of its own.
local function count_vgpus(options, vgpu)
    if vgpu["vgpu-per-task"] ~= "set" then
        return 1
    end
    return positive(options["ntasks-per-node"])
        or math.ceil((positive(options["ntasks"]) or 1) / (positive(options["nodes"]) or 1))
end

local function is_step(options)
    return options["type"] == "srun" and os.getenv("SLURM_JOB_ID") ~= nil
end

local function is_for_whole_gpu(gres)
    return string.find("," .. gres .. ",", "[,:]gpu[,:]") or string.find("," .. gres .. ",", "[,:]shard[,:]")
end

function slurm_cli_pre_submit(options, offset)
    local vgpu = options["spank"] and options["spank"]["openvgpu"]
    local partition, gres = options["partition"], options["gres"] or ""
    local tier = default_tier
    if not vgpu or not vgpu["vgpu"] or is_step(options) then
        return slurm.SUCCESS
    end
    if is_for_whole_gpu(gres) or options["gpus"] or options["gpus-per-node"] then
        slurm.log_error("--vgpu: a job has a part of a GPU, or whole GPUs and shards: leave out one of both")
        return slurm.ERROR
    end
    if partition then
        tier = tiers[partition]
    end
    local size = parse_size(string.match(vgpu["vgpu"], "^[^:]*"))
    if tier and size and not string.find(gres, "vgpu") then
        gres = gres ~= "" and gres .. "," or gres
        options["gres"] = gres .. "vgpu:" .. tier .. ":" .. size * count_vgpus(options, vgpu) .. "M"
    end
    return slurm.SUCCESS
end

function slurm_cli_setup_defaults(options, early)
    return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
    return slurm.SUCCESS
end
