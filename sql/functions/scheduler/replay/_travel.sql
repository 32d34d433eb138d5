-- odc._travel: make the views of schema odc_past show a moment, for the rest of the transaction.
-- Raises     OD010 BadRequest: the moment is in the future, or before the recorded past
create or replace function odc._travel(p_as_of timestamptz, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_since timestamptz;
begin
    if p_as_of is null or p_as_of > p_now then
        raise exception using errcode = 'OD010',
            message = format('%s is in the future', coalesce(_iso(p_as_of), 'null')),
            hint = format('It is now %s; `odcctl plan` shows what is planned.', _iso(p_now));
    end if;
    -- The first recorded change is the registration of a node.
    select greatest(s.at, least((select e.at from event as e order by e.id limit 1),
                                (select n.past_at from node_past as n order by n.past_id limit 1)))
      into v_since from past_since as s;
    if p_as_of < v_since or v_since = '-infinity' then
        raise exception using errcode = 'OD010',
            message = format('no history is kept for %s', _iso(p_as_of)),
            hint = case when v_since = '-infinity' then 'Nothing has happened yet.'
                        else format('The history begins at %s.', _iso(v_since)) end;
    end if;
    perform set_config('odcd.past_at', p_as_of::text, true), set_config('odcd.past_snapshot', '', true),
            set_config('odcd.past_own', '', true);
end;
$$;
