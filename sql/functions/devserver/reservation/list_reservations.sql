-- odc.list_reservations: dev servers, newest first.
-- Arguments  p_users     of these users; null: of the actor; {all}: of all users
--            p_statuses  with these; null: those in progress, and those that failed, were cancelled or expired in the
--                        last hour
--            p_ended     without p_statuses: all that ever existed
--            p_limit     maximum number
--            p_positions  as queue_positions returned them
-- Returns    a JSON array
create or replace function odc.list_reservations(
    p_actor jsonb, p_users text[], p_statuses text[], p_ended boolean, p_limit integer, p_positions jsonb, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_uid  constant integer := (p_actor ->> 'uid')::integer;
    v_users constant text[] := case when 'all' = any (p_users) then null else coalesce(p_users, '{}') end;
    v_live constant text[] := '{pending,queued,preparing,active}';
    v_ids  bigint[];
begin
    select array_agg(c.id) into v_ids
      from (select j.id
              from reservation as v
              join job as j on j.id = v.job_id
              left join running as r on r.job_id = j.id
             cross join lateral (select _reservation_status(coalesce(r.state, j.state, 'PENDING'), _seen_intent(r.job_id, r.intent), true) as status) as w
             where (v_users is null or p_users is null and j.uid = v_uid or j.user_name = any (v_users))
               and case when p_statuses is not null
                        then w.status = any (p_statuses) or w.status = 'queued' and 'pending' = any (p_statuses)
                        when p_ended then true
                        else w.status = any (v_live) or coalesce(j.ended_at, p_now) > p_now - interval '1 hour' end
             order by j.id desc
             limit p_limit) as c;
    return _render_reservations(coalesce(v_ids, '{}'), p_actor, false, p_positions, p_now);
end;
$$;
