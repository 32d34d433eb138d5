-- odc._check_change: refuse changes with impossible values.
create or replace function odc._check_change(
    p_job odc.job, p_place text, p_operator boolean, p_changes jsonb, p_now timestamptz)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_limit integer := (p_changes ->> 'time_limit_s')::integer;
    v_max   record;
    v_ends  timestamptz;
begin
    if p_changes ? 'nice' and (p_changes ->> 'nice')::integer < 0 and not p_operator then
        raise exception using errcode = 'OD013',
            message = format('nice value %s is negative, which only operators may set', p_changes ->> 'nice'),
            hint = 'Use 0, or a positive value to let other jobs go first.';
    end if;
    if p_changes ? 'name' and coalesce(p_changes ->> 'name', '') = '' then
        raise exception using errcode = 'OD010', message = 'a job needs a name', hint = 'Give at least one character.';
    end if;
    if p_changes ? 'array_throttle' then
        if p_job.array_job_id is null then
            raise exception using errcode = 'OD012',
                message = format('job %s is not an array', p_job.id), hint = 'Only arrays have a throttle.';
        elsif (p_changes ->> 'array_throttle')::integer < 0 then
            raise exception using errcode = 'OD010',
                message = format('array throttle %s is negative', p_changes ->> 'array_throttle'),
                hint = 'Give the number of tasks that may run at once; 0 means any number.';
        end if;
    end if;
    if p_changes ? 'time_limit_s' and p_job.kind = 'reservation' then
        raise exception using errcode = 'OD012',
            message = format('job %s is a reservation: its time limit cannot be changed', p_job.id),
            hint = case when p_place = 'running' then format('`odcctl extend %s` extends it, once.', p_job.id)
                        else 'Cancel it and reserve again.' end;
    end if;
    if p_changes ? 'time_limit_s' then
        if coalesce(v_limit, 0) < 1 then
            raise exception using errcode = 'OD010',
                message = format('time limit %s is not a positive number of seconds', p_changes ->> 'time_limit_s'),
                hint = 'Give the whole time limit, counted from the start of the job.';
        end if;
        select p.name, p.max_time_limit_s into v_max
          from partition as p
         where p.id = any (p_job.partition_ids) and p.max_time_limit_s < v_limit
           and (p_place = 'pending' or p.id = (select r.partition_id from running as r where r.job_id = p_job.id))
         order by p.max_time_limit_s limit 1;
        if found then
            raise exception using errcode = 'OD009',
                message = format('time limit %s exceeds the limit of %s of partition "%s"',
                                 _duration(v_limit),
                                 _duration(v_max.max_time_limit_s), v_max.name),
                hint = format('Request at most %s.', _duration(v_max.max_time_limit_s));
        end if;
        if p_place = 'running' and v_limit > p_job.time_limit_s and not p_operator then
            raise exception using errcode = 'OD013',
                message = format('the time limit of running job %s cannot be lengthened: the plan relies on its time limit of %s',
                                 p_job.id, _duration(p_job.time_limit_s)),
                hint = 'Its owner may shorten the time limit; only an operator may lengthen it.';
        end if;
    end if;
    if p_changes ->> 'deadline_at' is not null then
        perform _check_deadline((p_changes ->> 'deadline_at')::timestamptz,
                                greatest(p_now, (p_changes ->> 'begin_at')::timestamptz), v_limit);
    end if;
end;
$$;
