# SPDX-License-Identifier: Apache-2.0
# Completion for vgpu(1) in bash: commands, options, and the names of vGPUs and devices that there
# are. tests/cli/check-words.sh holds it to what 'vgpu help' says.
# shellcheck shell=bash

_vgpu_commands() {
        echo devices create apply run ls suspend resume migrate rename resize rm checkpoint top accounting usage logs info \
                env cdi simulate show types utilization sessions licence metadata placements heterogeneous capabilities version-range \
                share idle class scheduler
}

_vgpu_scheduler_options() {
        echo --device
        case $1 in
        set) echo --policy --timeslice --frequency --averaging-factor --no-arr ;;
        log) echo --follow ;;
        esac
}

_vgpu_options() {
        case $1 in
        devices) echo --names ;;
        create) echo --fb --device --devices --share --owner --idle-after --idle --class --pool-group ;;
        idle) echo --keep-context ;;
        scheduler) _vgpu_scheduler_options "$2" ;;
        run) echo --vgpu --fb --name --device --devices --no-wait ;;
        ls) echo --long --names --watch ;;
        suspend) echo --all --keep-context --group --pre-copy --timeout --verify ;;
        resume) echo --all --device --group --timeout ;;
        migrate) echo --device --timeout ;;
        rm) echo --force --yes ;;
        resize) echo --fb ;;
        cdi) echo --output ;;
        top) echo --once --delay --sort ;;
        accounting) echo --clear ;;
        usage) echo --since --until --by --csv ;;
        logs) echo --follow --since ;;
        types) echo --device --creatable ;;
        metadata) echo --device --output ;;
        utilization) echo --device --processes ;;
        placements | heterogeneous) echo --device --gpu-instance ;;
        licence | sessions | capabilities) echo --device ;;
        checkpoint) echo --timeout --gpu --tree --careful --force --for --storage ;;
        "checkpoint dump") echo --leave-running --cut-pipes --compress --parent --timeout --criu ;;
        "checkpoint load") echo --vgpu --device --criu ;;
        simulate) echo --list ;;
        esac
        echo --json --help
}

# What a manager has to say, which must not keep a person waiting.
_vgpu_ask() {
        timeout 2 vgpu "$@" --names 2>/dev/null
}

_vgpu_scenarios() {
        timeout 2 vgpu simulate --list 2>/dev/null | sed 's/ .*//'
}

# Where the program of 'vgpu run' begins in COMP_WORDS; nothing if it is not there yet.
_vgpu_program() {
        local i
        for ((i = 2; i < COMP_CWORD; i++)); do
                case ${COMP_WORDS[i]} in
                --) echo $((i + 1)) && return ;;
                --vgpu | --fb | --name | --device | --devices) ((i++)) ;;
                -*) ;;
                *) echo "$i" && return ;;
                esac
        done
}

# An action, then processes: those that have a CUDA driver loaded are not told from others here.
_vgpu_checkpoint() {
        if [ "$COMP_CWORD" -eq 2 ]; then
                echo state tid wait lock checkpoint restore unlock suspend resume toggle
                echo dump load check
        else
                ps -u "$(id -u)" -o pid= 2>/dev/null
        fi
}

_vgpu() {
        local command=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]}
        local before=${COMP_WORDS[COMP_CWORD - 1]} choices="" program

        COMPREPLY=()
        if [ "$COMP_CWORD" -eq 1 ]; then
                choices="$(_vgpu_commands) help --help --version"
                mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
                return
        fi

        if [ "$command" = run ]; then
                program=$(_vgpu_program)
                if [ -n "$program" ]; then
                        if declare -F _command_offset >/dev/null; then
                                _command_offset "$program"
                        else
                                compopt -o default
                        fi
                        return
                fi
        fi

        if [ "$command" = checkpoint ] && [ "$COMP_CWORD" -gt 2 ]; then
                case ${COMP_WORDS[2]} in
                dump | load | check)
                        command="checkpoint ${COMP_WORDS[2]}"
                        if [[ $word != -* && $before != --vgpu && $before != --compress ]]; then
                                compopt -o default
                                return
                        fi
                        ;;
                esac
        fi

        case $before in
        --compress) choices="zstd none" ;;
        --device) choices=$(_vgpu_ask devices) ;;
        --vgpu) choices=$(_vgpu_ask ls) ;;
        --owner) mapfile -t COMPREPLY < <(compgen -u -- "$word") && return ;;
        --by) choices="tenant vgpu part process device job container" ;;
        --sort) choices="gpu memory encoder time name" ;;
        --since | --until) choices="today 7d" ;;
        --devices | --fb | --name | --pool-group | --timeout | --delay | --gpu | --gpu-instance) return ;;
        --idle-after) choices="30s 5m 1h" ;;
        --idle) choices="suspend keep-context" ;;
        --class) choices="batch interactive" ;;
        --share | --timeslice | --frequency | --averaging-factor) return ;;
        -o | --output) compopt -o default && return ;;
        --for) choices="running locked checkpointed" ;;
        --policy) choices="best-effort equal-share fixed-share" ;;
        *)
                case $word in
                -*) choices=$(_vgpu_options "$command" "${COMP_WORDS[2]}") ;;
                *)
                        case $command in
                        apply) compopt -o default && return ;;
                        help) choices=$(_vgpu_commands) ;;
                        ls | logs | suspend | resume | migrate | rename | resize | rm | accounting | show | licence | sessions)
                                choices=$(_vgpu_ask ls)
                                ;;
                        share)
                                [ "$COMP_CWORD" -eq 2 ] && choices=$(_vgpu_ask ls)
                                [ "$COMP_CWORD" -eq 3 ] && choices="10 25 50 75 none"
                                ;;
                        idle)
                                [ "$COMP_CWORD" -eq 2 ] && choices=$(_vgpu_ask ls)
                                [ "$COMP_CWORD" -eq 3 ] && choices="30s 5m 1h never"
                                ;;
                        class)
                                [ "$COMP_CWORD" -eq 2 ] && choices=$(_vgpu_ask ls)
                                [ "$COMP_CWORD" -eq 3 ] && choices="batch interactive"
                                ;;
                        heterogeneous) choices="on off" ;;
                        version-range | capabilities)
                                [ "$COMP_CWORD" -eq 2 ] && choices="set"
                                ;;
                        metadata)
                                [ "$COMP_CWORD" -eq 2 ] && choices="export check"
                                [ "$before" = export ] && choices=$(_vgpu_ask ls)
                                if [ "$COMP_CWORD" -gt 2 ] && [ "${COMP_WORDS[2]}" = check ]; then
                                        compopt -o default
                                fi
                                ;;
                        checkpoint) choices=$(_vgpu_checkpoint) ;;
                        scheduler) [ "$COMP_CWORD" -eq 2 ] && choices="show set log" ;;
                        run) choices="--vgpu --fb" ;;
                        simulate) choices=$(_vgpu_scenarios) ;;
                        esac
                        ;;
                esac
                ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}

complete -F _vgpu vgpu
