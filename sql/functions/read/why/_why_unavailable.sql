-- odc._why_unavailable: the nodes and bookings in the way of a job that no end of another job would start.
-- Arguments  p_actor  as for _booking_label
-- Returns    cause node or booking, with a sentence about each
create or replace function odc._why_unavailable(p_job_id bigint, p_now timestamptz, p_actor jsonb)
returns table (cause text, text text, booking_id integer, node text, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return query select 'node', n.text, null::integer, n.node, null::timestamptz from _why_nodes(p_job_id) as n;
    return query
        select 'booking', b.text, b.booking_id, b.node, b.until from _why_bookings(p_job_id, p_now, p_actor) as b;
end;
$$;
