"""Every duration the operator waits for, in one place, so that tests can shrink them.

Limits a user may set per resource (run limits, retention) are not here: they have their own
fields in the resource and its settings.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """The operator's own durations with their production values."""

    read_timeout: timedelta = timedelta(seconds=10)
    """How long a GET or one page of a list may take."""
    change_timeout: timedelta = timedelta(seconds=40)
    """How long a start, stop or delete may take; Daytona holds a start for up to 30 s."""
    create_timeout: timedelta = timedelta(seconds=60)
    """How long the POST that creates a sandbox may take."""
    create_retry: timedelta = timedelta(seconds=10)
    """How long to wait once two sandboxes in a row broke; so much longer after each further one."""
    landing_margin: timedelta = timedelta(seconds=60)
    """How long after its time-out a create may still take effect."""
    absence_gap: timedelta = timedelta(seconds=15)
    """How far apart two looks must be to prove that a sandbox is gone; GETs are cached 10 s."""
    fleet_tick: timedelta = timedelta(seconds=12)
    """How often the fleet view is read."""
    fleet_stale: timedelta = timedelta(seconds=36)
    """How old a fleet view may be before it says nothing any more."""
    event_gap: timedelta = timedelta(milliseconds=500)
    """How far apart state events may bring the passes of one resource forward."""
    event_retry: timedelta = timedelta(seconds=30)
    """How long the feed of state events waits at most before it connects again."""
    settle_check: timedelta = timedelta(seconds=1)
    """How soon a sandbox in transition is looked at again; once a tick when that takes long."""
    unknown_check: timedelta = timedelta(seconds=15)
    """How soon to ask again when Daytona, or GitHub for a pull request, could not be asked."""
    organization_cache: timedelta = timedelta(seconds=60)
    """For how long the organisation of the key is taken as known."""
    refused_check: timedelta = timedelta(minutes=5)
    """How soon an order that Daytona refused is tried again."""
    queue_limit: timedelta = timedelta(minutes=30)
    """How long a sandbox may wait for a build slot."""
    build_limit: timedelta = timedelta(minutes=70)
    """How long an image build may take; Daytona itself gives up after 60 min."""
    pull_limit: timedelta = timedelta(minutes=20)
    """How long pulling a snapshot may take."""
    create_limit: timedelta = timedelta(minutes=5)
    """How long a sandbox may stay in creation."""
    start_limit: timedelta = timedelta(seconds=180)
    """How long a start may take."""
    restore_limit: timedelta = timedelta(minutes=30)
    """How long a restore from the archive may take."""
    reshape_limit: timedelta = timedelta(minutes=15)
    """How long a resize, snapshot or fork may take."""
    stop_limit: timedelta = timedelta(minutes=5)
    """How long a stop may take."""
    recover_limit: timedelta = timedelta(minutes=10)
    """How long a recovery may take."""
    deletion_stuck: timedelta = timedelta(minutes=30)
    """After how long a deletion that makes no progress is called stuck."""
    deletion_retry: timedelta = timedelta(seconds=5)
    """How soon a refused deletion is tried again."""
    deletion_limit: timedelta = timedelta(seconds=60)
    """How long a deletion after a run may take before it is recorded as failed."""
    deletion_pause: timedelta = timedelta(minutes=10)
    """How far apart the tries after that may be at most."""
    idle_limit: timedelta = timedelta(minutes=15)
    """How long a sandbox without a run may be idle before it is stopped."""
    keep_alive_limit: timedelta = timedelta(minutes=30)
    """How long keepAlive holds a sandbox that nobody uses."""
    work_hold: timedelta = timedelta(seconds=30)
    """How long a push or a rescue of work may hold a sandbox that is to end."""
    push_timeout: timedelta = timedelta(seconds=20)
    """How long one push may take; less than `work_hold`, so that a lost answer is no lost push."""
    token_use: timedelta = timedelta(minutes=30)
    """How old a token may be that pushes; GitHub's last for an hour."""
    rescue_hold: timedelta = timedelta(minutes=2)
    """How long work is tried to be saved where nothing else has to end meanwhile."""
    run_tick: timedelta = timedelta(seconds=2)
    """How long one look at a running agent waits for news."""
    stop_promise: timedelta = timedelta(seconds=30)
    """After how long a stop that is not confirmed counts as failed, though it goes on."""
    deadline_warning: timedelta = timedelta(minutes=1)
    """How long before its end a run that is to be ended is warned of, at most."""
    audit_delay: timedelta = timedelta(seconds=60)
    """How long after its end a stopped or timed-out run's branch is looked at on GitHub."""
    audit_span: timedelta = timedelta(hours=1)
    """How long ago a run may have ended that is still looked at."""
    trigger_debounce: timedelta = timedelta(seconds=10)
    """How old a run must be before a new trigger replaces it: of a burst only the last counts."""
    probe_timeout: timedelta = timedelta(seconds=5)
    """How long a sandbox may take to answer at all before a run uses it."""
    scout_use: timedelta = timedelta(seconds=30)
    """For how long what GitHub said about a run that has no sandbox yet may be used."""
    quick_collection: timedelta = timedelta(seconds=0.5)
    """How long collecting may take before the agent's end is written down without its work."""
    toolbox_timeout: timedelta = timedelta(seconds=30)
    """How long a short command in a sandbox may take."""
    install_timeout: timedelta = timedelta(minutes=5)
    """How long the one attempt to install a missing agent may take."""
    clone_timeout: timedelta = timedelta(minutes=5)
    """How long one clone may take."""
    collect_timeout: timedelta = timedelta(minutes=2)
    """How long making a commit of the work may take."""
    live_log_gap: timedelta = timedelta(seconds=5)
    """How far apart at least the output of a running agent is copied to where people read it."""
    live_log_share: timedelta = timedelta(milliseconds=100)
    """How far apart on average these copies are at least, those of all agents together."""
    agent_grace: timedelta = timedelta(seconds=10)
    """How much longer than its limit an agent may live before the operator itself ends it."""
    kill_timeout: timedelta = timedelta(seconds=8)
    """How long the kill of an agent may take; it gets 3 s to clean up."""
    tell_limit: timedelta = timedelta(minutes=2)
    """How long a finished run waits for GitHub to take its comment."""
    comment_delay: timedelta = timedelta(milliseconds=300)
    """How long a phase lasts before the comment tells of it: the run goes first."""
    comment_gap: timedelta = timedelta(seconds=5)
    """How far apart at least two edits of one comment are: GitHub limits what is written."""
    comment_refresh: timedelta = timedelta(minutes=1)
    """How often the comment on an issue tells anew how a run goes that has no other news."""
    record_patience: timedelta = timedelta(seconds=5)
    """How long the record of a create lets other resources go first."""
    longest_wait: timedelta = timedelta(hours=1)
    """After how long a resource is looked at again at the latest: clocks may jump."""
    resync: timedelta = timedelta(minutes=10)
    """How often the full list of resources repairs missed deletes."""
    settings_tick: timedelta = timedelta(seconds=3)
    """How often the files of secrets are read; a new key takes effect this much later at most."""
    reap_tick: timedelta = timedelta(seconds=30)
    """How often the reaper looks for orphans."""
    orphan_age: timedelta = timedelta(minutes=5)
    """How old a sandbox must be before it can be an orphan to kill."""
    orphan_gap: timedelta = timedelta(seconds=60)
    """How far apart two sightings of an orphan must be before it is killed."""
    orphan_reshape: timedelta = timedelta(hours=1)
    """How long an orphan in a resize, snapshot or fork is left alone."""
    run_rate_window: timedelta = timedelta(minutes=1)
    """Over how long new runs of one author in one repository are counted."""
    rank_refresh: timedelta = timedelta(milliseconds=250)
    """How long one ranking of a changing queue is used before the next is made."""
    gate_patience: timedelta = timedelta(seconds=5)
    """How long a call waits for its turn at a rate limit; less than any call's time-out."""
    lease_duration: timedelta = timedelta(seconds=15)
    """How long a lease must show no renewal before another replica may take it."""
    lease_hold: timedelta = timedelta(seconds=10)
    """How long after it sent its last renewal a replica may act."""
    lease_retry: timedelta = timedelta(seconds=2)
    """How often a lease is renewed or looked at, and how long one such request may take."""

    newborn_margin: timedelta = timedelta(seconds=5)
    """How long after a replica took charge a resource must be made to be surely new to all."""

    def __post_init__(self) -> None:
        if not self.lease_retry < self.lease_hold < self.lease_duration:
            raise ValueError("lease_retry must be below lease_hold, and that below lease_duration")

    @property
    def landing_horizon(self) -> timedelta:
        """Return how long after its intent a create may still land."""
        return self.create_timeout + self.landing_margin

    def scaled(self, factor: float) -> Timings:
        """Return the same timings, all multiplied by `factor`."""
        return Timings(**{each.name: getattr(self, each.name) * factor for each in fields(self)})
