-- odc._refuse_booking: report why a booking cannot have its nodes.
-- Arguments  p_count  number of nodes it needs
-- Raises     OD008 NeverFits, OD019 BookingConflict; always one of them
create or replace function odc._refuse_booking(p_booking booking, p_count integer, p_now timestamptz)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_found record;
    v_words text;
    v_free  timestamptz;
begin
    select count(*) as total, count(*) filter (where c.taken_by is null) as open,
           count(*) filter (where c.taken_by is null and c.busy_job is null) as fit
      into v_found
      from _booking_candidates(p_booking, p_now) as c;
    if v_found.total < p_count then
        raise exception using errcode = 'OD008',
            message = format('the booking needs %s %s, but there %s', p_count,
                             concat_ws(' ', case when p_count = 1 then 'node' else 'nodes' end,
                                       'of type "' || p_booking.gpu_type || '"',
                                       (select 'of partition "' || p.name || '"' from partition as p
                                         where p.id = p_booking.partition_id)),
                             case v_found.total when 0 then 'is none' when 1 then 'is 1' else 'are ' || v_found.total end),
            hint = 'Book fewer nodes, or others; `odcctl nodes` lists them.';
    elsif v_found.open < p_count then
        select string_agg(format('%s %s booked by "%s" from %s to %s', t.names,
                                 case when t.nodes = 1 then 'is' else 'are' end,
                                 t.taken_by, _iso(t.taken_from), _iso(t.taken_to)),
                          '; ' order by t.taken_from, t.taken_by)
          into v_words
          from (select c.taken_by, c.taken_from, c.taken_to, count(*) as nodes,
                       _fold_names(array_agg(c.name)) as names
                  from _booking_candidates(p_booking, p_now) as c
                 where c.taken_by is not null
                 group by c.taken_by, c.taken_from, c.taken_to) as t;
        raise exception using errcode = 'OD019',
            message = format('of the %s %s that it needs, %s free of other bookings at that time: %s', p_count,
                             case when p_count = 1 then 'node' else 'nodes' end,
                             case v_found.open when 0 then 'none is' when 1 then 'only 1 is'
                                               else format('only %s are', v_found.open) end, v_words),
            hint = 'Choose another time or other nodes, or change the other booking: `odcctl booking list`.';
    end if;

    -- The jobs that reach into the window, and when enough of the nodes are free of them.
    select string_agg(format('job %s on %s %s', t.busy_job, t.names, coalesce('until ' || _iso(t.busy_until), 'without a time limit')),
                      ', ' order by t.busy_until, t.busy_job)
           || case when max(t.jobs) > 10 then format(' and %s more', max(t.jobs) - 10) else '' end
      into v_words
      from (select c.busy_job, c.busy_until, _fold_names(array_agg(c.name)) as names, count(*) over () as jobs
              from _booking_candidates(p_booking, p_now) as c
             where c.taken_by is null and c.busy_job is not null
             group by c.busy_job, c.busy_until
             order by c.busy_until, c.busy_job limit 10) as t;
    select c.busy_until into v_free
      from _booking_candidates(p_booking, p_now) as c
     where c.taken_by is null and c.busy_job is not null
     order by c.busy_until
    offset p_count - v_found.fit - 1 limit 1;
    raise exception using errcode = 'OD019',
        message = format('running jobs overlap the booking on %s of %s nodes%s: %s', v_found.open - v_found.fit, v_found.open,
                         case when v_found.fit > 0 then format(' (it needs %s)', p_count) else '' end, v_words),
        hint = concat_ws(' ',
            case when isfinite(v_free) then format('Start the booking at %s or later.', _iso(v_free))
                 else 'One of the jobs has no time limit: set one with `odcctl update ID --time`.' end,
            case when p_booking.kind = 'maintenance'
                 then 'Or book the nodes anyway with --force: those jobs keep running, and no other job that would overlap the booking starts.' end);
end;
$$;
