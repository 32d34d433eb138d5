-- odc._postpone_reservation_ends: move the planned ends of reservations in preparation, whose time has not begun: each
-- ends its full duration from now.
-- Locks      running, allocation rows of these
create or replace function odc._postpone_reservation_ends(p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    with postponed as (
        update running as r set ends_at = p_now + make_interval(secs => v.duration_s) + _reservation_grace()
          from reservation as v
         where v.job_id = r.job_id and v.launched_at is null and r.intent is null
           and r.ends_at < p_now + make_interval(secs => v.duration_s) + _reservation_grace() - interval '1 minute'
        returning r.job_id, r.ends_at
    )
    update allocation as a set ends_at = o.ends_at from postponed as o where a.job_id = o.job_id;
end;
$$;
