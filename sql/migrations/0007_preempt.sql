-- Preemption: what a victim is told and remembers, and what its preemptor keeps until it starts.

-- preempted_by: the job it ends for; kill_at: when its grace is over, and at the latest gives back what it holds.
-- preemption: what its record says: {"attempt", "by", "qos", "victim_qos", "mode", "at", "ran_s", "grace_s", "lost_gpu_s" or
-- "lost_cpu_s", "checkpoint_at"}. checkpoint_at: the last checkpoint it reported; work since then is what ending it would lose.
alter table running
    add column preempted_by  bigint,
    add column kill_at       timestamptz,
    add column checkpoint_at timestamptz,
    add column preemption    jsonb;
create index running_preempted on running (preempted_by) where preempted_by is not null;
-- Who is to end, of thousands that run.
create index running_intent on running (job_id) where intent is not null;

-- The nodes that a preemptor's victims leave to it: it comes first, in order of claimed_at, and takes no others. It
-- claims them while its victims go, and until claim_ends_at.
alter table pending
    add column claim_nodes   integer[],
    add column claimed_at    timestamptz,
    add column claim_ends_at timestamptz,
    add check (num_nulls(claim_nodes, claimed_at, claim_ends_at) in (0, 3));
create index pending_claim on pending (claimed_at, job_id) where claim_nodes is not null;

alter table attempt add column preemption jsonb;

-- Their past has what they have: see 0006.
alter table running_past
    add column preempted_by  bigint,
    add column kill_at       timestamptz,
    add column checkpoint_at timestamptz,
    add column preemption    jsonb;
alter table pending_past
    add column claim_nodes   integer[],
    add column claimed_at    timestamptz,
    add column claim_ends_at timestamptz;
