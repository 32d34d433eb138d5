-- odc._note_planner: store a digest of the installed planning functions: decide and every function it calls, by name.
create or replace function odc._note_planner()
returns void
language sql volatile as $$
    with recursive source as materialized (
        select p.proname::text as name, string_agg(pg_get_functiondef(p.oid), E'\n' order by p.oid::regprocedure::text) as text
          from pg_proc as p
         where p.pronamespace = 'odc'::regnamespace and p.prokind = 'f'
         group by p.proname
    ), call as materialized (
        select s.name, c.called[1] as called
          from source as s
         cross join lateral regexp_matches(s.text, '(\w+)\(', 'g') as c (called)
    ), needed (name) as (
        select 'decide'
         union
        select c.called from needed as n join call as c on c.name = n.name join source as s on s.name = c.called
    )
    insert into odc.planner (digest)
    select encode(sha256(convert_to(string_agg(s.text, E'\n' order by s.name collate "C"), 'UTF8')), 'hex')
      from needed as n join source as s on s.name = n.name
        on conflict (one) do update set digest = excluded.digest;
$$;
