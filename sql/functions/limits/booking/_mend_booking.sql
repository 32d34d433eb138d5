-- odc._mend_booking: replace nodes that a booking has lost, add new nodes that match it, and record what it lacks.
-- A booking chosen by count gives up a node that is not UP or is gone if another can replace it: one without other
-- bookings and without running jobs that reach into the window. A maintenance booking keeps its nodes, which may be
-- down for it.
-- Locks      booking. The caller holds the turn
create or replace function odc._mend_booking(p_booking_id integer, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    b         booking;
    v_mine    integer[];
    v_lost    integer[] := '{}';
    v_new     integer[] := '{}';
    v_missing integer := 0;
    v_down    text;
    v_names   text[];
    v_reason  text;
begin
    select * into strict b from booking where id = p_booking_id for update;
    if b.state not in ('PLANNED', 'ACTIVE') then
        return;
    end if;
    v_mine := array(select node_id from booking_node where booking_id = b.id order by node_id);
    if b.node_list is null then
        select array_agg(n.id order by n.id) into v_lost
          from node as n
         where b.kind = 'use' and b.node_count is not null and n.id = any (v_mine) and n.state <> 'UP';
        v_lost := coalesce(v_lost, '{}');
        v_missing := greatest(0, b.node_count - cardinality(v_mine));
        if b.node_count is null then
            v_new := array(select c.node_id from _booking_candidates(b, p_now) as c
                            where c.taken_by is null and c.node_id <> all (v_mine));
        elsif v_missing > 0 or v_lost <> '{}' then
            v_new := array(select c.node_id from _booking_candidates(b, p_now) as c
                            where c.taken_by is null and c.busy_job is null and c.up and c.node_id <> all (v_mine)
                            order by c.jobs, c.planned, c.node_id
                            limit v_missing + cardinality(v_lost));
        end if;
        v_lost := v_lost[: greatest(0, cardinality(v_new) - v_missing)];
        if v_new <> '{}' then
            delete from booking_node where booking_id = b.id and node_id = any (v_lost);
            insert into booking_node (booking_id, node_id) select b.id, n from unnest(v_new) as n;
            insert into event (at, kind, actor, detail)
            values (p_now, 'booking_nodes', 'odcd', jsonb_strip_nulls(jsonb_build_object(
                        'booking_id', b.id, 'name', b.name,
                        'added', (select _fold_names(array_agg(n.name)) from node as n where n.id = any (v_new)),
                        'removed', (select _fold_names(array_agg(n.name)) from node as n where n.id = any (v_lost)))));
            perform _wake();
        end if;
    end if;

    select array_agg(n.name), count(*) into v_names, v_missing
      from booking_node as m join node as n on n.id = m.node_id
     where m.booking_id = b.id and n.state <> 'UP' and b.kind = 'use';
    v_down := case when v_missing > 0
                   then format('%s %s not up', _fold_names(v_names), case when v_missing = 1 then 'is' else 'are' end) end;
    select count(*) into v_missing from booking_node where booking_id = b.id;
    v_missing := coalesce(b.node_count, cardinality(b.node_list), 1) - v_missing;
    v_reason := concat_ws('; ', case when v_missing > 0 then format('%s of its nodes %s gone', v_missing,
                                          case when v_missing = 1 then 'is' else 'are' end) end, v_down);
    if v_reason <> '' and b.node_list is null and b.node_count is not null then
        v_reason := v_reason || ', and no other node can replace it';
    end if;
    update booking set reason = nullif(v_reason, '') where id = b.id and reason is distinct from nullif(v_reason, '');
    if found then
        insert into event (at, kind, actor, detail)
        values (p_now, 'booking_reason', 'odcd', jsonb_build_object(
                    'booking_id', b.id, 'name', b.name, 'reason', nullif(v_reason, '')));
        perform _wake();
    end if;
end;
$$;
