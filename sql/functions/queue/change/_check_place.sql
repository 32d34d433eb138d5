-- odc._check_place: refuse changes that a running or ended job no longer accepts.
-- Arguments  p_place  pending, running or ended
-- Raises     OD012 WrongState
create or replace function odc._check_place(p_job_id bigint, p_place text, p_changes jsonb)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_pending_only constant text[] := '{nice,partitions,dependency,begin_at,booking,account,qos}';
    v_wrong text;
begin
    if p_place = 'ended' and p_changes - 'comment' <> '{}' then
        raise exception using errcode = 'OD012',
            message = format('job %s has ended', p_job_id), hint = 'Only its comment can be changed.';
    end if;
    if p_place = 'running' then
        select string_agg(k, ', ' order by k) into v_wrong
          from jsonb_object_keys(p_changes) as k where k = any (v_pending_only);
        if v_wrong is not null then
            raise exception using errcode = 'OD012',
                message = format('job %s is running: its %s can no longer be changed', p_job_id, v_wrong),
                hint = 'The name, comment, deadline, array throttle and time limit of a running job can be changed.';
        end if;
    end if;
end;
$$;
