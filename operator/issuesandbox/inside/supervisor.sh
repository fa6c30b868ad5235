#!/bin/sh
# Runs one agent inside a sandbox, keeps its output, enforces its limits and ends it for sure.
#
#   start LIMITS DIR CWD STDIN PROGRAM [ARGUMENT...]   start the agent, unless DIR exists already
#   poll DIR OFFSET SECONDS BYTES [LIMITS]             wait, then tell the state and new output
#   stop DIR                                           end the agent, or forbid a start to come
#   sweep DIR                                          kill whatever is left of the run
#
# `start` needs this text in the variable ISSUESANDBOX_SCRIPT: the supervisor is run from there, so
# that it is what was sent, whatever lies in the sandbox.
#
# DIR is the folder of the run: who makes it, starts the agent. Times are in hundredths of a
# second of the machine's uptime, so no clock has to agree with any other. LIMITS is
# "INACTIVITY AGENT RUN SOURCE ." with 0 for no limit. The small files in DIR have a fixed size
# from the beginning and are overwritten in place: a full disk does not lose the agent's end.
#
# Needs a POSIX shell and awk, base64 (or od), cat, dd, head, ls, mkfifo, rm, sed, sleep, tail, tr;
# uses setsid and /proc where they exist. The agent may be hostile, but has no more rights than
# this program. Until the agent's environment is passed on no variable is set here: one that is
# also in the environment would be changed for the agent.
set -u

# --- the small files of a run -----------------------------------------------------------------

put() { # DIR FILE TEXT: overwrite in place
    # Whatever else the agent may have put there could hold us up.
    [ -f "$1/$2" ] || [ ! -e "$1/$2" ] || return 1
    printf '%-63s\n' "$3" 2>/dev/null 1<>"$1/$2"
}

get() { # FILE: set `value`; fail if the file is gone or blank
    value=
    [ -f "$dir/$1" ] && read -r value <"$dir/$1"
    [ -n "$value" ]
}

is_number() { # one that every shell can reckon with: no octal one, and at most 15 digits
    case $1 in '' | 0?* | *[!0123456789]* | ????????????????*) return 1 ;; esac
}

clock() { # set `now`
    if read -r now _ 2>/dev/null </proc/uptime; then
        now=${now%.*}${now#*.}
        now=${now#"${now%%[!0]*}"}
    else
        now=$(date +%s)00
    fi
}

# --- processes ----------------------------------------------------------------------------------

pause() { # about a tenth of a second
    sleep 0.1 2>/dev/null || sleep 1
}

marked() { # print the files of the processes that carry the mark of this run
    set -- "ISSUESANDBOX_RUN=:${dir##*/}:"
    found=$(ISSUESANDBOX_RUN="${1#*=}" \
        grep -lzxF "$1" /proc/self/environ /proc/[0-9]*/environ 2>/dev/null)
    # Where it does not find itself, it cannot read such files: a small version.
    case $found in
    /proc/self/environ*) echo "$found" ;;
    *)
        # With several files head puts the name of each before its content.
        head -n 99999 /proc/[0-9]*/environ 2>/dev/null | tr '\000' '\n' | awk -v mark="$1" '
        /^==> \/proc\/[0-9]+\/environ <==$/ { file = $2 }
        $0 == mark { print file }'
        ;;
    esac
}

# Reads the process table. BUSY 1 prints a figure that changes when a child of the agent works;
# BUSY 0 the ids of the agent, its session, the marked ones and all their descendants. An id that
# was used again since the agent's end is recognised by its start time. The supervisor itself goes
# by what it remembers: the agent may have changed the file, and taken the mark off itself.
table() { # BUSY
    the_agent || value='0 0'
    {
        [ "$1" = 1 ] || marked
        # No name of a process can pass for a mark behind this.
        echo .
        cat /proc/[0-9]*/stat 2>/dev/null
    } |
        awk -v agent="${value% *}" -v start="${value#* }" -v busy="$1" -v keeper="$keeper" '
        !told { if ($0 == ".") told = 1; else { split($0, part, "/"); hit[part[3]] = 1 }; next }
        {
            # A program may have a line break in its name.
            if ($0 !~ /\) [A-Za-z] [0-9]/) { held = held $0; next }
            line = held $0; held = ""; pid = line + 0
            sub(/^.*\) /, "", line); split(line, f, " ")
            if (f[1] == "Z" || f[1] == "X") next
            parent[pid] = f[2]; group[pid] = f[3]; session[pid] = f[4]; born[pid] = f[20]
            own[pid] = f[12] + f[13]; ended[pid] = f[14] + f[15]
        }
        END {
            if (agent > 0 && (!(agent in born) || born[agent] == start))
                for (p in parent)
                    if (p == agent || session[p] == agent || group[p] == agent) hit[p] = 1
            if (keeper > 0) for (p in parent) if (parent[p] == keeper) hit[p] = 1
            do {
                more = 0
                for (p in parent) if (!(p in hit) && (parent[p] in hit)) { hit[p] = 1; more = 1 }
            } while (more)
            for (p in hit) if (p in parent) {
                if (!busy) { print p; continue }
                sum += ended[p] + p
                if (p != agent) sum += own[p]
            }
            if (busy) printf "%.0f\n", sum
        }'
}

members() { # set `found` to the processes of this run
    if [ -d /proc/self ]; then
        found=$(table 0)
    else
        found=
        the_agent && kill -0 "-${value% *}" 2>/dev/null && found="-${value% *}"
    fi
}

kill_members() { # kill until nothing is found, and set `left` to what cannot be killed
    rounds=0
    while members && [ -n "$found" ] && [ "$rounds" -lt 20 ]; do
        rounds=$((rounds + 1))
        # shellcheck disable=SC2086
        kill -KILL $found 2>/dev/null
        pause
    done
    # shellcheck disable=SC2086
    set -- $found
    left=$#
}

the_agent() { # set `value` to the agent's id and start time
    get agent
    value=${known:-$value}
    # 0 would be whoever asks.
    is_number "${value% *}" && [ "${value% *}" != 0 ]
}

end_agent() { # ask the agent to end, which ends its own tool calls; then use force
    if the_agent; then
        kill -TERM "${value% *}" 2>/dev/null
        clock
        until=$((now + 300))
        while ! get exit && [ "$now" -lt "$until" ] && the_agent &&
            kill -0 "${value% *}" 2>/dev/null; do
            pause
            clock
        done
    fi
    kill_members
}

is_supervised() { # does the supervisor of this run live?
    get pid && is_number "$value" && kill -0 "$value" 2>/dev/null || return 1
    [ -d /proc/self ] || return 0
    line=
    read -r line 2>/dev/null <"/proc/$value/cmdline"
    case $line in *"$dir"*) ;; *) return 1 ;; esac
}

# --- output -------------------------------------------------------------------------------------

length() { # FILE: set `length`
    # shellcheck disable=SC2046
    set -- $(ls -ln "$1" 2>/dev/null)
    length=${5:-0}
    is_number "$length" || length=0
}

is_segment() { # FILE: is it a part of the output? The agent may have put anything beside
    case ${1##*/} in
    out.*[!0123456789]*) return 1 ;;
    out.???????????????) [ -f "$1" ] && [ ! -L "$1" ] ;;
    *) return 1 ;;
    esac
}

offset_of() { # SEGMENT: set `offset_of` to where it begins in the whole output
    offset_of=${1##*.}
    offset_of=${offset_of#"${offset_of%%[!0]*}"}
    offset_of=${offset_of:-0}
}

measure() { # set `newest` to the last segment and `size` to how much was printed since the start
    size=0
    newest=
    for file in "$dir"/out.*; do
        if is_segment "$file"; then newest=$file; fi
    done
    if [ -n "$newest" ]; then
        length "$newest"
        offset_of "$newest"
        size=$((offset_of + length))
    fi
}

# Reads the agent's output to its end. dd takes from a pipe what is there and never more.
drain() {
    whole=1048576
    block=65536
    segment=out.000000000000000
    kept=
    begin=0
    length=0
    lost=0
    while :; do
        blocks=$(((whole - length + block - 1) / block))
        if said=$(dd bs=$block count=$blocks 2>&1 >>"$dir/$segment"); then
            case $said in '0+0 records in'*) break ;; esac
        else
            # No room, or no folder any more: the agent must not block on a full pipe.
            [ -d "$dir" ] || exec cat >/dev/null
            case $said in
            *'records in'*) ;;
            *)
                said=$(dd bs=$block count=1 2>&1 >/dev/null)
                case $said in '0+0 records in'*) break ;; esac
                ;;
            esac
            # shellcheck disable=SC2086
            [ -z "$kept" ] || (cd "$dir" && rm -f $kept)
            kept=
            lost=$((lost + 1))
            put "$dir" lost "$lost"
        fi
        length "$dir/$segment"
        [ "$length" -lt $whole ] || next_segment
    done
    put "$dir" drained 1
}

next_segment() { # keep the first segment and the last eight, with the one that begins now
    [ "$begin" = 0 ] || kept="$kept $segment"
    begin=$((begin + length))
    length=0
    segment=$(printf 'out.%015d' "$begin")
    # shellcheck disable=SC2086
    set -- $kept
    if [ $# -gt 7 ]; then
        rm -f "$dir/$1"
        shift
        kept="$*"
    fi
}

# --- the supervisor -----------------------------------------------------------------------------

keep() { # DIR CWD STDIN PROGRAM [ARGUMENT...]: start the agent and record its end
    (
        cd -- "$2" || exit 126
        [ "${ZDOTDIR-}" != /dev/null ] || unset ZDOTDIR
        ISSUESANDBOX_RUN=":${1##*/}:"
        # Both are the system's own: the PATH of the agent may name what an earlier one left.
        if [ -e "$1/signals" ]; then
            shift 3
            set -- "$(command -v env)" --default-signal=INT,QUIT "$@"
        else
            shift 3
        fi
        if command -v setsid >/dev/null; then set -- "$(command -v setsid)" "$@"; fi
        [ "${ISSUESANDBOX_PATH+set}" ] && PATH=$ISSUESANDBOX_PATH
        export PATH ISSUESANDBOX_RUN
        unset ISSUESANDBOX_PATH ISSUESANDBOX_SCRIPT
        exec "$@"
    ) <"$3" >"$1/pipe" 2>&1 &
    line=
    [ ! -r "/proc/$!/stat" ] || read -r line <"/proc/$!/stat"
    dir=$1
    # shellcheck disable=SC2086
    set -- ${line##*) }
    put "$dir" agent "$! ${20:-0}"
    wait $!
    put "$dir" exit $?
    kill -USR1 $$
}

forget() { # take the agent's secrets out of the environment of everything started from here
    for name in $(export -p | sed -n -e 's/^export \([A-Za-z_][A-Za-z0-9_]*\).*/\1/p' \
        -e 's/^declare -[a-z]* \([A-Za-z_][A-Za-z0-9_]*\).*/\1/p'); do
        case $name in
        PATH | PWD | OLDPWD | UID | EUID | PPID | SHELLOPTS | BASHOPTS) ;;
        *) unset "$name" ;;
        esac
    done
    LC_ALL=C
    export LC_ALL
}

supervise() { # DIR CWD STDIN PROGRAM [ARGUMENT...]
    trap : USR1
    # While the agent is being started, whoever asks for our end is heard a moment later.
    trap ISSUESANDBOX_ASKED=yes TERM INT HUP
    put "$1" pid $$
    if (dir=$1 && get ended); then
        put "$1" over 0
        exit
    fi
    keep "$@" &
    forget
    keeper=$!
    dir=$1
    umask 077
    drain <"$dir/pipe" &
    drainer=$!
    known=
    until get agent || ! kill -0 "$keeper" 2>/dev/null; do pause; done
    known=$value
    trap give_up TERM INT HUP
    [ -z "${ISSUESANDBOX_ASKED-}" ] || give_up
    clock
    born=$now
    heard=$now
    heard_size=
    looked=$now
    busy=
    while tick; do
        sleep 1 &
        wait $! || kill $! 2>/dev/null
    done
    finish
}

tick() { # look at everything once; fail when the agent has ended
    # First, because the run waits for it.
    if get exit; then return 1; fi
    clock
    measure
    get lost
    [ "$size $value" = "$heard_size" ] || { heard_size="$size $value" && heard=$now; }
    put "$dir" beat "$now $heard $born $size"
    [ -f "$dir/limits" ] && [ -p "$dir/pipe" ] || give_up
    kill -0 "$drainer" 2>/dev/null || get drained || give_up
    kill -0 "$keeper" 2>/dev/null || get exit || give_up
    over_limit || get ended || return 0
    end_agent
    pause
    ! get exit
}

over_limit() { # record the first limit that is exceeded, unless an end was asked for already
    get limits || return 1
    # shellcheck disable=SC2086
    set -- $value
    [ "${5-}" = . ] && is_number "$1" && is_number "$2" && is_number "$3" || return 1
    [ "$4" != OutputOrChild ] || look_at_children "$1"
    if [ "$3" -gt 0 ] && [ $((now - born)) -ge "$3" ]; then
        why=Run
    elif [ "$2" -gt 0 ] && [ $((now - born)) -ge "$2" ]; then
        why=Agent
    elif [ "$1" -gt 0 ] && [ $((now - heard)) -ge "$1" ]; then
        why=Inactivity
    else
        return 1
    fi
    get ended || put "$dir" ended "$why"
    return 0
}

look_at_children() { # LIMIT: a child that works is a sign of life; look four times per limit
    every=$(($1 / 4))
    [ "$every" -lt 500 ] || every=500
    [ $((now - looked)) -ge "$every" ] || return 0
    looked=$now
    seen=$(table 1)
    [ "$seen" = "$busy" ] || heard=$now
    busy=$seen
}

give_up() { # our own files or processes are gone: nothing may go on without us
    trap '' TERM INT HUP
    end_agent
    wake
    exit 1
}

finish() { # the agent has ended: end what it left, take its last words, tell everybody
    kill_members
    # Whoever never opened the pipe would wait for the other side for ever.
    : 2>/dev/null <>"$dir/pipe"
    clock
    until=$((now + 200))
    while ! get drained && [ "$now" -lt "$until" ]; do
        pause
        clock
    done
    # Somebody unknown still holds the output.
    get drained || { left=$((left + 1)) && kill "$drainer" 2>/dev/null; }
    put "$dir" over "$left"
    wake
}

wake() { # end the nap of whoever waits in `poll`
    get wake && is_number "$value" || return
    line=
    read -r line 2>/dev/null <"/proc/$value/cmdline"
    case $line in sleep*) kill "$value" 2>/dev/null ;; esac
}

# --- the verbs ----------------------------------------------------------------------------------

prepare() { # LIMITS: make the folder; fail if it exists, set `problem` if it cannot be used
    mkdir -p "${dir%/*}" 2>/dev/null
    mkdir "$dir" 2>/dev/null || {
        [ -d "$dir" ] || problem='the folder of the run cannot be made'
        return 1
    }
    clock
    put "$dir" made "$now"
    for file in limits pid agent exit ended over drained lost beat wake; do put "$dir" $file ''; done
    put "$dir" limits "$1"
    get limits && [ "$value" = "$1" ] && mkfifo "$dir/pipe" || {
        rm -rf "$dir"
        problem='there is no room for the files of the run'
        return 1
    }
}

begin() { # DIR LIMITS: say whether the agent may be started; if not, tell the state
    umask 077
    dir=$1
    fresh=no
    for tool in awk cat dd head ls mkfifo rm sed sleep tail tr; do
        command -v $tool >/dev/null || problem="the sandbox has no $tool"
    done
    # A shell lets what it starts in the background ignore these two for ever. Whether that can be
    # taken back is found out beside the rest: the agent waits for all of it.
    env --default-signal=INT,QUIT true 2>/dev/null &
    if [ -z "$problem" ] && prepare "$2"; then
        ! wait $! || put "$dir" signals yes
        return 0
    fi
    look
    report
    return 1
}

start() { # LIMITS DIR CWD STDIN PROGRAM [ARGUMENT...]
    (problem= && begin "$2" "$1") || return 0
    shift
    launch "$@"
    dir=$1
    fresh=yes
    # The agent goes first: looking at it, and whatever our caller does then, costs time as well.
    pause
    look
    report
}

launch() { # DIR CWD STDIN PROGRAM [ARGUMENT...]: start the supervisor and leave it alone
    set -- sh -c 'eval "$ISSUESANDBOX_SCRIPT"' supervisor supervise "$@"
    if command -v setsid >/dev/null; then set -- setsid "$@"; else set -m 2>/dev/null; fi
    "$@" </dev/null >/dev/null 2>&1 &
}

poll() { # OFFSET SECONDS BYTES [LIMITS]
    if [ -n "${4-}" ] && get limits && [ "$value" != "$4" ]; then put "$dir" limits "$4"; fi
    look
    case $state in
    RUNNING | STARTING)
        [ "$2" = 0 ] || is_behind "$1" "$3" || doze "$2"
        look
        ;;
    esac
    report "$1" "$3"
}

is_behind() { # OFFSET BYTES: is there more to read than one answer can hold?
    get beat || return 1
    value=${value##* }
    is_number "$value" && [ $((value - $1)) -ge "$2" ]
}

doze() { # SECONDS: sleep in one piece; the supervisor ends it when the agent has ended
    sleep "$1" &
    put "$dir" wake $!
    if get over; then kill $!; fi
    wait $!
}

stop() {
    # A start that is still under way finds the folder taken.
    if prepare '0 0 0 Output .'; then
        put "$dir" ended Stop
        put "$dir" over 0
    fi
    get over || get ended || put "$dir" ended Stop
    if ! get over; then
        clock
        if ! get pid; then
            # It is being started, and will find that it must not.
            until_over 350
        elif is_beating && is_supervised; then
            kill -USR1 "$value" 2>/dev/null
            until_over 350
        fi
        get over || { if get exit; then kill_members; else end_agent; fi; }
        if is_beating && is_supervised; then until_over 250; fi
    else
        kill_members
    fi
    look
    report
}

until_over() { # TIME: wait for the supervisor
    clock
    until=$((now + $1))
    while ! get over && [ "$now" -lt "$until" ]; do
        pause
        clock
    done
}

sweep() {
    kill_members
    look
    # A run waits for this, and nobody asks for more.
    brief=yes
    report
}

look() { # set `state`
    state=LOST
    if [ ! -d "$dir" ]; then
        state=ABSENT
        return
    fi
    clock
    if ! is_complete; then
        # It is being made, or somebody removes our files.
        if ! get pid && is_young 500; then state=STARTING; fi
    elif get over; then
        state=ENDED
    elif ! get pid; then
        if is_young 3000; then state=STARTING; fi
    elif is_supervised; then
        state=RUNNING
        is_beating || { sleep 3 && clock && is_beating; } || state=LOST
    elif get over; then
        state=ENDED # it ended while we looked
    fi
    [ $state != ENDED ] || left=${left-$value}
}

is_complete() {
    for file in limits pid agent exit ended over beat; do [ -f "$dir/$file" ] || return; done
}

is_young() { # TIME: was the folder made less than so long ago?
    if get made; then
        is_number "$value" && is_within "$value" "$1"
    else
        [ ! -f "$dir/beat" ]
    fi
}

is_beating() { # a supervisor that shows no sign of life for 30 s is stopped or starved
    get beat || return 0
    is_number "${value%% *}" && is_within "${value%% *}" 3000
}

is_within() { # MOMENT TIME: did it happen that recently, and since the machine was started?
    [ $((now - $1)) -lt "$2" ] && [ "$1" -le "$now" ]
}

report() { # [OFFSET BYTES]
    echo issuesandbox-pulse
    echo "state $state"
    [ -z "${problem-}" ] || echo "problem $problem"
    [ -z "${fresh-}" ] || echo "fresh $fresh"
    if [ "$state" != ABSENT ]; then
        get exit && is_number "$value" && echo "exit $value"
        get ended && case $value in Inactivity | Agent | Run | Stop) echo "ended $value" ;; esac
        [ -n "${brief-}" ] || report_figures
    fi
    ! is_number "${left-}" || echo "survivors $left"
    [ $# = 0 ] || [ "$state" = ABSENT ] || report_chunk "$1" "$2"
    echo end
}

report_figures() {
    measure
    echo "size $size"
    clock
    get beat || return
    # shellcheck disable=SC2086
    set -- $value
    is_number "${2-}" && is_number "${3-}" && is_number "${4-}" || return
    echo "age $((now - $3))"
    if [ "$4" = "$size" ]; then echo "silent $((now - $2))"; else echo "silent 0"; fi
}

report_chunk() { # OFFSET BYTES: of one segment; what was dropped is skipped
    [ "$size" -gt "$1" ] || return 0
    # Mostly only the newest segment is asked for, and that was measured just now.
    [ "$1" -ge "$offset_of" ] || for file in "$dir"/out.*; do
        is_segment "$file" || continue
        newest=$file
        length "$newest"
        offset_of "$newest"
        [ $((offset_of + length)) -le "$1" ] || break
    done
    from=$(($1 - offset_of))
    [ "$from" -ge 0 ] || from=0
    if command -v base64 >/dev/null; then coding=base64; else coding=hex; fi
    echo "$coding $((offset_of + from))"
    # Whatever lies there by now may have no end.
    tail -c "+$((from + 1))" "$newest" 2>/dev/null | head -c "$2" | encode
}

encode() {
    if [ $coding = base64 ]; then base64; else od -An -v -tx1; fi
}

main() {
    case $1 in
    start | supervise) "$@" ;;
    *)
        verb=$1
        dir=$2
        keeper=
        known=
        shift 2
        umask 077
        "$verb" "$@"
        ;;
    esac
}

main "$@"
exit
