-- odc._choose_nodes: the nodes of a new or changed booking.
-- If there are more than it needs, it prefers the nodes it already has, then nodes that are up, then those with the
-- fewest running and planned jobs, then by id. Several nodes of an EFA type come from one EFA domain if one has enough
-- that are up.
-- Arguments  p_booking  need not be in the table
--            p_mine     the nodes it has
-- Raises     OD008 NeverFits: there are too few nodes; OD019 BookingConflict: other bookings have them, or running
--            jobs reach into the window
create or replace function odc._choose_nodes(p_booking booking, p_mine integer[], p_now timestamptz)
returns integer[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_count  integer;
    v_total  integer;
    v_fit    integer;
    v_chosen integer[];
begin
    select count(*), count(*) filter (where c.taken_by is null and (p_booking.ignore_running or c.busy_job is null))
      into v_total, v_fit
      from _booking_candidates(p_booking, p_now) as c;
    v_count := greatest(coalesce(p_booking.node_count, v_total), 1);
    if v_fit < v_count then
        perform _refuse_booking(p_booking, v_count, p_now);
    end if;
    with free as (
        select c.*, c.busy_job is not null as busy, coalesce(c.node_id = any (p_mine), false) as mine
          from _booking_candidates(p_booking, p_now) as c
         where c.taken_by is null and (p_booking.ignore_running or c.busy_job is null)
    ), best as (
        select d.domain
          from (select f.*, row_number() over (partition by f.domain
                                               order by f.mine desc, f.busy, f.jobs, f.planned, f.node_id) as rank
                  from free as f where f.domain is not null and f.up) as d
         where d.rank <= v_count
         group by d.domain
        having count(*) = v_count
         order by count(*) filter (where d.mine) desc, count(*) filter (where d.busy),
                  sum(d.jobs), sum(d.planned), d.domain
         limit 1
    )
    select array_agg(c.node_id order by c.node_id) into v_chosen
      from (select f.node_id
              from free as f
             order by f.mine desc, f.up desc, f.busy, v_count > 1 and f.domain is distinct from (select domain from best),
                      f.jobs, f.planned, f.node_id
             limit v_count) as c;
    return v_chosen;
end;
$$;
