-- odc._assign_ids: assign ids to the jobs of the accepted requests, in the order of the requests, and store them under the
-- idempotency keys. Of several requests with the same key, only the first is accepted.
-- Arguments  p_heads, p_requests  the requests, and per job its request, counted from 0
--            p_left_out           requests that were refused or answered before
--            p_keyed              whether any request has a key
--            p_sizes              per job how many consecutive ids it takes, of which it has the first; null: each takes one
-- Returns    per job its id; null: its request was left out, is a dry run, or has a key that another one stored first
-- Locks      idempotency by (uid, key)
-- Raises     OD040 DatabaseBusy: other sessions took ids between those of a heterogeneous job, however often it tried
create or replace function odc._assign_ids(
    p_heads jsonb[], p_requests integer[], p_left_out integer[], p_keyed boolean, p_now timestamptz,
    p_sizes integer[] default null)
returns bigint[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_ids  bigint[];
    v_lost integer[];
begin
    with taken as materialized (
        select min(h.n) - 1 as request
          from unnest(p_heads) with ordinality as h (head, n)
         where h.n - 1 <> all (p_left_out) and not coalesce((h.head ->> 'dry_run')::boolean, false)
         group by case when h.head ->> 'key' is null then h.n end, h.head ->> 'uid', h.head ->> 'key'
    )
    -- 0: it gets consecutive ones below. A heterogeneous job takes no id that it does not use.
    select array_agg(case when t.request is null then null
                          when coalesce(p_sizes[j.n::integer], 1) > 1 then 0
                          else nextval('job_id_seq') end order by j.n) into v_ids
      from unnest(p_requests) with ordinality as j (request, n)
      left join taken as t on t.request = j.request;
    for v_at in 1..coalesce(cardinality(p_sizes), 0) loop
        continue when p_sizes[v_at] = 1 or v_ids[v_at] is null;
        v_ids[v_at] := _consecutive_ids(p_sizes[v_at]);
    end loop;
    if p_keyed then
        v_lost := _claim_keys(p_heads, p_requests, v_ids, p_now);
    end if;
    if v_lost is not null then
        v_ids := array(select case when j.request <> all (v_lost) then j.id end
                         from unnest(p_requests, v_ids) with ordinality as j (request, id, n) order by j.n);
    end if;
    return v_ids;
end;
$$;
