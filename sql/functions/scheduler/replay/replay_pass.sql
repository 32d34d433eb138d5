-- odc.replay_pass: repeat a pass's decision from the input it read, and compare the results. Its writes are temporary.
-- Arguments  p_policy  null: the policies of that time; otherwise all partitions use this one
--            p_plan_depth  null: as the policies say; otherwise this many protected jobs
-- Returns    JSON {pass_id, at, term, policy: {then, now}, input: {equal, then, now, differs}, output: {…}, chain, starts, planned,
--            equal, differences: [{kind, name, job_id, jobs, then, now}]}. job_id, jobs: for a refused request or a
--            class over a limit, the first job that waits with it, and how many do. equal: input and output are equal;
--            the output may differ only if the rules (policy) differ. chain: whether its digest follows from the pass
--            before; null: that pass is no longer kept
-- Raises     OD030 UnknownPass: it does not exist, is no longer kept, or is from before a restore; OD029 UnknownPolicy
create or replace function odc.replay_pass(p_pass_id bigint, p_policy text default null, p_plan_depth integer default null)
returns text
language plpgsql volatile set search_path = pg_temp, odc_past, odc as $$
declare
    v_parts   constant text[] := '{classes,nodes,shapes,limits,queue,releases}';   -- of read_digest, 8 bytes each
    v_pass    odc.pass;
    v_before  bytea;
    v_waiting bigint[];
    v_kinds   text[];  v_names text[];  v_firsts bigint[];  v_counts integer[];    -- jobs waiting with a request or in a class
    v_policy  text;
    d         record;
    v_plan    bytea;
    v_differs json;
begin
    v_pass := odc._find_pass(p_pass_id);
    if p_policy is not null and not exists (select from odc.policy as y where y.name = p_policy) then
        raise exception using errcode = 'OD029',
            message = format('policy "%s" does not exist', p_policy),
            hint = format('Policies: %s.', (select string_agg(y.name, ', ' order by y.name) from odc.policy as y));
    end if;
    perform odc._see_pass(v_pass, false);
    perform odc._stand_in();
    v_waiting := array(select p.job_id from pending as p);
    select array_agg(k.kind), array_agg(k.name), array_agg(k.first), array_agg(k.n)
      into v_kinds, v_names, v_firsts, v_counts
      from (select w.kind, w.name, min(p.job_id) as first, count(*) as n
              from pending as p
             cross join lateral (values ('refusal', p.shape_id::text),
                                        ('limit', concat_ws(' ', p.shape_id, p.time_limit_s, p.uid, p.account_id, p.qos_id))) as w (kind, name)
             group by w.kind, w.name) as k;
    if p_policy is not null then
        update partition set policy = p_policy;
        insert into policy select y.* from odc.policy as y
         where y.name = p_policy and not exists (select from policy as o where o.name = p_policy);
    end if;
    v_policy := _policy_version();
    select * into d from decide(v_pass.at, null, v_pass.start_limit, null, p_plan_depth, p_digest => true);
    v_plan := odc._plan_digest(d);

    perform odc._see_pass(v_pass, true);
    select json_agg(json_build_object('kind', coalesce(o.kind, n.kind), 'name', coalesce(o.name, n.name),
                                      'job_id', w.first, 'jobs', w.n, 'then', o.what, 'now', n.what)
                    order by array_position('{start,planned,preempt,refusal,limit}'::text[], coalesce(o.kind, n.kind)),
                             length(coalesce(o.name, n.name)), coalesce(o.name, n.name))
      into v_differs
      from odc._replay_then(v_pass.xid, v_waiting) as o
      full join odc._replay_now(d) as n on n.kind = o.kind and n.name = o.name
      left join unnest(v_kinds, v_names, v_firsts, v_counts) as w (kind, name, first, n)
        on w.kind = coalesce(o.kind, n.kind) and w.name = coalesce(o.name, n.name)
     where o.what is distinct from n.what
       -- Jobs that changed before the plan was written were left out of it.
       and not (coalesce(o.kind, n.kind) in ('start', 'planned')
                and coalesce(o.name, n.name)::bigint = any (coalesce(v_pass.dropped, '{}')))
       and not (coalesce(o.kind, n.kind) = 'preempt'
                and (regexp_match(coalesce(o.what, n.what), '\d+'))[1]::bigint = any (coalesce(v_pass.dropped, '{}')));
    select s.chain_digest into v_before from odc.pass as s where s.id < p_pass_id order by s.id desc limit 1;
    return json_build_object(
        'pass_id', v_pass.id, 'at', _iso(v_pass.at), 'term', v_pass.term,
        'policy', json_build_object('then', v_pass.policy, 'now', v_policy),
        'input', json_build_object('equal', d.read_digest is not distinct from v_pass.read_digest,
                                   'then', encode(v_pass.read_digest, 'hex'), 'now', encode(d.read_digest, 'hex'),
                                   'differs', (
            select json_agg(p.name order by p.ord) filter (where substr(v_pass.read_digest, p.ord::integer * 8 - 7, 8)
                                                           <> substr(d.read_digest, p.ord::integer * 8 - 7, 8))
              from unnest(v_parts) with ordinality as p (name, ord)
             where length(d.read_digest) = length(v_pass.read_digest))),
        'output', json_build_object('equal', v_plan is not distinct from v_pass.plan_digest and v_differs is null,
                                    'then', encode(v_pass.plan_digest, 'hex'), 'now', encode(v_plan, 'hex')),
        'chain', case when v_before is not null or v_pass.id = 1
                      then v_pass.chain_digest = odc._chain_digest(
                               v_before, v_pass.at, v_pass.policy, v_pass.last_event_id, v_pass.read_digest,
                               v_pass.plan_digest) end,
        'looked', d.looked, 'starts', coalesce(cardinality(d.start_jobs), 0),
        'planned', coalesce(cardinality(d.head_jobs), 0),
        'equal', v_plan = v_pass.plan_digest and d.read_digest = v_pass.read_digest and v_differs is null,
        'differences', coalesce(v_differs, '[]'))::text;
end;
$$;
