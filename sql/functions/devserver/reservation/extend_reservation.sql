-- odc.extend_reservation: extend an active reservation: once, by at most 24 hours, to at most 48 hours in total since it
-- became active.
-- It makes the two plans that show the delayed jobs before it takes the turn, and repeats all checks under the turn. A
-- dry run takes no lock and writes nothing.
-- Arguments  p_actor    {user, uid, operator}
--            p_seconds  how much to add
--            p_dry_run  only report the changes
-- Returns    JSON {id, expires_at, extended_s, extensions, until, delays: [{job_id, name, user, from, to}], dry_run}:
--            delays: planned starts that the extension delays; until: the latest possible end
-- Locks      to write: the turn; running, reservation, allocation
-- Raises     OD006 UnknownJob, OD009 LimitExceeded, OD010 BadRequest, OD012 WrongState, OD013 NotOwner
create or replace function odc.extend_reservation(
    p_actor jsonb, p_job_id bigint, p_seconds integer, p_now timestamptz, p_dry_run boolean default false)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_most    constant integer := 86400;
    v_in_all  constant integer := 172800;
    v_asked   reservation;
    v_new     record;
    v_delays  json;
begin
    v_new := _check_extension(p_actor, p_job_id, p_seconds, p_now);
    v_delays := _extension_delays(p_job_id, v_new.ends_at, p_now);
    if p_dry_run then
        select * into v_asked from reservation as v where v.job_id = p_job_id;
        v_asked.extensions := v_asked.extensions + 1;
        v_asked.extended_s := v_asked.extended_s + p_seconds;
    else
        perform _take_turn(p_now);
        perform from running as r where r.job_id = p_job_id for update;
        perform from reservation as v where v.job_id = p_job_id for update;
        v_new := _check_extension(p_actor, p_job_id, p_seconds, p_now);
        update reservation
           set expires_at = v_new.expires_at, extensions = extensions + 1, extended_s = extended_s + p_seconds,
               extended_at = p_now,
               stale_files = stale_files or exists (select from reservation_warning as w where w.job_id = p_job_id)
         where job_id = p_job_id
        returning * into v_asked;
        update running set ends_at = v_new.ends_at, time_limit_s = time_limit_s + p_seconds where job_id = p_job_id;
        update allocation set ends_at = v_new.ends_at where job_id = p_job_id;
        update job set time_limit_s = time_limit_s + p_seconds where id = p_job_id;
        insert into event (at, kind, actor, job_id, detail)
        values (p_now, 'extended', p_actor ->> 'user', p_job_id,
                jsonb_build_object('by_s', p_seconds, 'expires_at', _iso(v_new.expires_at),
                                   'delays', json_array_length(v_delays)));
        perform _wake();
    end if;
    return json_build_object(
        'id', p_job_id, 'expires_at', _iso(v_new.expires_at), 'extended_s', v_asked.extended_s,
        'extensions', v_asked.extensions,
        'until', _iso(v_asked.launched_at + make_interval(secs => least(v_in_all, v_asked.duration_s + v_most))),
        'delays', v_delays, 'dry_run', p_dry_run)::text;
end;
$$;
