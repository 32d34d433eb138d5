-- odc._repair_members: recount the live members of each running job; end a job whose members have all ended.
-- Returns    one sentence per corrected job
-- Locks      the caller holds the turn; running rows that differ; as _end_attempts
create or replace function odc._repair_members(p_now timestamptz)
returns text[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_told text[];
    v_over bigint[];
begin
    with wrong as materialized (
        select m.job_id, m.was, m.live from _wrong_members() as m
    ), corrected as (
        update running as r set live_members = w.live from wrong as w where r.job_id = w.job_id
    )
    select array(select format('job %s: %s live members were counted; corrected to %s', w.job_id, w.was, w.live)
                   from wrong as w order by w.job_id),
           (select array_agg(w.job_id order by w.job_id) from wrong as w where w.live = 0)
      into v_told, v_over;
    if v_over is not null then
        perform _end_attempts(v_over, p_now);
    end if;
    return v_told;
end;
$$;
