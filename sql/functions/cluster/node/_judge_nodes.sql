-- odc._judge_nodes: every node's failures in its last 20 ends, compared with the other nodes of its GPU type.
-- Pairs of user and script are counted, not jobs: repeated failures of one broken script are one failure and no further
-- ends. A script that also failed early on another node is not counted at all.
-- Returns    failed, ended: of the last hour and the last 20 ends, counted like this; scripts, users: distinct ones of
--            failed; causes: of failed, ascending; peers_*: of all other nodes of the type together that are not
--            quarantined;
--            eats: the failure rate is at least one half and three times the peers' (failed + 1) / (ended + 2), with at
--            least three pairs of user and script, two users and two scripts
create or replace function odc._judge_nodes(p_now timestamptz)
returns table (node_id integer, gpu_type text, failed integer, ended integer, scripts integer, users integer, causes text[],
               peers_failed integer, peers_ended integer, eats boolean)
language sql stable as $$
    with recent as (
        select s.node_id, s.uid, s.script_digest, s.cause, n.ends,
               s.cause = 'failed' and exists (
                   select from odc.node_strike as o
                    where o.script_digest = s.script_digest and o.uid = s.uid and o.cause = 'failed'
                      and o.node_id <> s.node_id) as elsewhere
          from odc.node_strike as s
          join odc.node_free as f on f.node_id = s.node_id
         cross join lateral (select count(*) as ends from unnest(s.nths) as e (nth) where e.nth > f.ended - 20) as n
         where s.at > p_now - interval '1 hour' and n.ends > 0
    ), struck as (
        select r.node_id, sum(r.ends)::integer as ends,
               count(distinct (r.uid, r.script_digest)) filter (where not r.elsewhere)::integer as failed,
               count(distinct r.script_digest) filter (where not r.elsewhere)::integer as scripts,
               count(distinct r.uid) filter (where not r.elsewhere)::integer as users,
               array_agg(distinct r.cause) filter (where not r.elsewhere) as causes
          from recent as r
         group by r.node_id
    ), tally as (
        select n.id as node_id, n.gpu_type, q.node_id is not null as held, coalesce(s.failed, 0) as failed, coalesce(s.scripts, 0) as scripts,
               coalesce(s.users, 0) as users, coalesce(s.causes, '{}') as causes,
               greatest(least(f.ended, 20) - coalesce(s.ends - s.failed, 0), coalesce(s.failed, 0)) as ended
          from odc.node as n
          join odc.node_free as f on f.node_id = n.id
          left join struck as s on s.node_id = n.id
          left join odc.node_quarantine as q on q.node_id = n.id and q.drained
    ), beside as (
        select t.*,
               (coalesce(sum(t.failed) filter (where not t.held) over kind, 0)
                - case when t.held then 0 else t.failed end)::integer as peers_failed,
               (coalesce(sum(t.ended) filter (where not t.held) over kind, 0)
                - case when t.held then 0 else t.ended end)::integer as peers_ended
          from tally as t
        window kind as (partition by t.gpu_type)
    )
    select b.node_id, b.gpu_type, b.failed, b.ended, b.scripts, b.users, b.causes, b.peers_failed, b.peers_ended,
           b.failed >= 3 and b.users >= 2 and b.scripts >= 2 and 2 * b.failed >= b.ended
           and b.failed * (b.peers_ended + 2) >= 3 * (b.peers_failed + 1) * b.ended
      from beside as b
$$;
