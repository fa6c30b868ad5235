"""Programs that stand in for agents which are not scripted: they do what their file tells them."""

from __future__ import annotations

# What Cursor's agent prints, by its documentation.
CURSOR = r"""#!/bin/sh
[ "$1" != --version ] || { echo 2026.01.01-abcdef; exit; }
for last; do :; done
case $last in *'read the file '*) ;; *) echo "no prompt: $last" >&2; exit 2 ;; esac
file=${last#*read the file }
file=${file%% first:*}
echo '{"type":"system","subtype":"init","session_id":"c-1","model":"auto"}'
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"Working."}]}}'
if grep -q 'be silent' "$file"; then sleep 1000; fi
if grep -q 'talk for ever' "$file"; then
    (setsid sleep 1000 & echo $! >child)
    while :; do echo '{"type":"thinking","subtype":"delta"}'; sleep 0.2; done
fi
echo a >a.txt
echo '{"type":"result","subtype":"success","is_error":false,"result":"Did it."}'
"""
CUSTOM = r"""#!/bin/sh
if grep -q 'be silent' "$ISSUESANDBOX_ISSUE_FILE"; then sleep 1000; fi
if grep -q 'talk for ever' "$ISSUESANDBOX_ISSUE_FILE"; then
    (setsid sleep 1000 & echo $! >child)
    while :; do echo; sleep 0.2; done
fi
echo a >a.txt; echo Did it. >"$ISSUESANDBOX_SUMMARY_FILE"
"""
