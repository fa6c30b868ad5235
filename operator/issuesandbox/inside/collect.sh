#!/bin/sh
# Turns what a run left in its work tree into one commit and a pack, inside the sandbox.
#
#   collect.sh commit|patch WORK FOLDER NONCE PARENT REST SUMMARY PACK_LIMIT HOME
#
# WORK is the clone and PARENT the commit its work is based on. REST is the commit object after
# its `tree` line, in base64: the operator writes it and can so tell the commit's id. SUMMARY is
# a file in WORK that is read and not committed. FOLDER gets the results, COMMIT.pack and, for
# `patch`, COMMIT.patch; NONCE tells calls at the same time apart. The answer goes to standard
# output, one word and one value per line, file names as git quotes them, and is complete when its
# last line is `end`. It is to be run with no environment but a PATH, of which the system's folders
# count first and nothing in HOME counts.
#
# A run waits for this, and most of the time goes into starting programs: few are started, and what
# is rare, such as a submodule, is looked for before anything is done about it.
#
# Nothing in the work tree or its `.git` is trusted: it was an agent's to change. `.git` only
# lends its objects. Configuration, index, attributes, ignore rules outside the tree and hooks
# are our own, so that no filter, hook, monitor, driver or include named there is ever run.
set -u
umask 077
LC_ALL=C
export LC_ALL

names_limit=32768
changes_limit=50
summary_limit=6144
detail_limit=600
# A ConfigMap holds little more.
patch_limit=921600
# A pack up to this size comes with the answer, so that nobody has to ask for it.
told_limit=65536

configuration='[core]
	repositoryformatversion = 0
	bare = false
	fileMode = true
	symlinks = true
	ignoreCase = false
	autocrlf = false
	safecrlf = false
	protectNTFS = true
	protectHFS = true
	untrackedCache = false
	preloadIndex = false
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	bigFileThreshold = 16m
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[diff]
	ignoreSubmodules = all
[advice]
	addEmbeddedRepo = false'

say() { printf '%s %s\n' "$1" "$2"; }

fail() {
    wait
    say error "$1"
    [ ! -f "$out/errors" ] || say detail "$(tail -c "$detail_limit" "$out/errors" | encoded)"
    say end -
    exit 0
}

encoded() { base64 | tr -d '\n'; }

# Some versions of wc put spaces before the number.
size_of() { echo $(($(wc -c <"$1"))); }

# An agent may have put programs of its own wherever it may write: the system's come first, and
# nothing is taken from its home.
trust_path() {
    set -f
    IFS=:
    found=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    for each in $PATH; do
        case $each/ in
        "$home"/*) ;;
        /*) found=$found:$each ;;
        esac
    done
    unset IFS
    set +f
    PATH=$found
}

# A repository with nothing in it but our configuration. It takes the parent as the beginning of
# all history, so that nothing before it is ever read.
make_repository() {
    echo 'ref: refs/heads/collected' >"$out/git/HEAD"
    echo "$parent" >"$out/git/shallow"
    printf '%s\n' "$work/.git/objects" >"$out/git/objects/info/alternates"
    for each in alternates http-alternates; do
        each=$work/.git/objects/info/$each
        if [ -e "$each" ] || [ -L "$each" ]; then rm -f "$each"; fi
    done
    printf '%s\n' "$configuration" >"$out/git/config" || fail NoSpace
    export HOME="$out/home" XDG_CONFIG_HOME="$out/home"
    export GIT_DIR="$out/git" GIT_WORK_TREE="$work" GIT_INDEX_FILE="$out/index"
    export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_SYSTEM=/dev/null GIT_CONFIG_GLOBAL=/dev/null
    export GIT_ATTR_NOSYSTEM=1 GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1
    export GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_LITERAL_PATHSPECS=0
}

# git would wait for ever at a named pipe in the place of one of its files, and commits none. On the
# way, everything is told that could be the mark of a repository inside this one.
remove_pipes() {
    find . \( -type p -o -type c -o -type b \) -exec rm -f {} + -o -path './*/.git' -print
}

# One name per line and back; small versions of sed cannot take a NUL inside a line.
as_lines() { tr '\0\n' '\n\001'; }
as_names() { tr '\n\001' '\0\n'; }

# What git must not look into: it would run `git status` inside, under that repository's own
# configuration. Submodules of the parent keep their place, other repositories are left out.
list_submodules() {
    git ls-tree -r "$parent" | grep -q '^160000 ' || return 0
    git ls-tree -r -z "$parent" | as_lines |
        sed -n 's/^160000 commit [0-9a-f]*	//p' | as_names >"$out/submodules"
}

list_nested() {
    [ -n "$marks" ] || return 0
    git ls-files -z --others --exclude-standard | as_lines |
        sed -n 's,/$,,p' | as_names >"$out/nested"
}

excluded() { # FILE: its names as pathspecs; mostly there are none
    [ ! -s "$1" ] || as_lines <"$1" | sed 's/^/:(top,exclude,literal)/' | as_names
}

stage() {
    list_submodules &
    git rev-parse --verify "$parent^{tree}" >"$out/before" &
    git read-tree "$parent" || fail RepositoryDamaged
    list_nested
    wait
    read -r before <"$out/before" || fail RepositoryDamaged
    {
        printf '.\0:(top,exclude,literal)%s\0' "$summary"
        excluded "$out/submodules"
        excluded "$out/nested"
    } >"$out/paths"
    # 1: some files could not be read; they stay as they were.
    git add --all --ignore-errors --pathspec-from-file="$out/paths" --pathspec-file-nul
    [ $? -le 1 ] || fail StageFailed
    # Takes the commit that a submodule's HEAD names, without running anything in it.
    [ ! -s "$out/submodules" ] ||
        git update-index --add --remove -z --stdin <"$out/submodules" || :
}

differences() {
    git diff-tree -r -M --no-ext-diff --no-textconv --ignore-submodules=none "$@" \
        "$parent" "$tree"
}

tell_changes() {
    # For each file one line of what happened to it, then for each one of its lines in the same
    # order, then one that sums all up.
    differences --raw --numstat --shortstat |
        awk -F '\t' -v most="$changes_limit" -v room="$names_limit" '
        /^:/ {
            sub(/^.* /, "", $1); kind = substr($1, 1, 1)
            files++; created += kind == "A"; deleted += kind == "D"
            if (listed == files - 1 && files <= most && (room -= length($NF)) > 0) {
                kinds[++listed] = kind; names[listed] = $NF
            }
            next
        }
        /^ / { lines = $0; next }
        ++counted <= listed { print "change", kinds[counted], $1, $2, names[counted] }
        END { printf "files %d\ncreated %d\ndeleted %d\nlines %s\n", files, created, deleted, lines }'
}

tell_summary() {
    file=$work/$summary
    if [ -f "$file" ] && [ ! -L "$file" ]; then
        say summary "$(head -c "$((summary_limit + 1))" "$file" | encoded)"
    fi
}

make_commit() {
    commit=$({ printf 'tree %s\n' "$tree" && printf '%s' "$rest" | base64 -d; } |
        git hash-object -t commit -w --stdin) || fail CommitFailed
}

make_pack() {
    printf '%s\n^%s\n' "$commit" "$parent" |
        git pack-objects --revs --thin --stdout -q |
        head -c "$((pack_limit + 1))" >"$out/pack" || fail NoSpace
    size_of "$out/pack" >"$out/size" &
    packed=$(head -c "$told_limit" "$out/pack" | encoded)
    wait $!
    read -r pack_size <"$out/size" || fail NoSpace
    [ "$pack_size" -gt 0 ] || fail PackFailed
    [ "$pack_size" -le "$pack_limit" ] || fail PackTooLarge
    mv -f "$out/pack" "$folder/$commit.pack" || fail NoSpace
}

make_patch() {
    differences -p --binary --full-index --no-color --src-prefix=a/ --dst-prefix=b/ \
        >"$out/patch" || fail NoSpace
    [ "$(size_of "$out/patch")" -le "$patch_limit" ] || fail PatchTooLarge
    mv -f "$out/patch" "$folder/$commit.patch" || fail NoSpace
    say patch "$(size_of "$folder/$commit.patch")"
}

collect() {
    [ -d "$work/.git/objects" ] || fail RepositoryDamaged
    command -v git >/dev/null || fail GitMissing
    make_repository
    stage
    tree=$(git write-tree) || fail TreeFailed
    say tree "$tree"
    nested=0
    [ ! -s "$out/nested" ] || nested=$(($(tr -cd '\0' <"$out/nested" | wc -c)))
    say nested "$nested"
    tell_summary
    if [ "$tree" != "$before" ]; then
        tell_changes &
        make_commit
        make_pack
        wait
        say commit "$commit"
        say pack "$pack_size"
        [ "$pack_size" -gt "$told_limit" ] || say packed "$packed"
        [ "$mode" != patch ] || make_patch
    fi
    say end -
}

mode=$1 work=$2 folder=$3 out=$3/collect.$4 parent=$5 rest=$6 summary=$7 pack_limit=$8
home=$9
trust_path
say collected 1
if [ ! -d "$work" ] || [ -L "$work" ] || ! cd "$work"; then
    fail WorkspaceLost
fi
[ ! -e "$out" ] || rm -rf "$out"
# Nobody waits until it is cleared away.
trap 'wait; { cd / && rm -rf "$out"; } >/dev/null 2>&1 &' EXIT
mkdir -p "$out/git/objects/info" "$out/git/refs" "$out/home" 2>/dev/null &
marks=$(remove_pipes 2>/dev/null) || marks=unknown
wait $! || fail NoSpace
collect 2>"$out/errors"
