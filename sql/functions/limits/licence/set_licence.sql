-- odc.set_licence: create a licence, or change how many of it exist, by an operator. Running jobs continue even if they
-- use more than exist then; no job that needs it starts until enough are released.
-- Returns    the licence as JSON text
-- Locks      the turn; licence
-- Raises     OD013 NotOwner, OD010 BadRequest
create or replace function odc.set_licence(p_actor jsonb, p_name text, p_total bigint, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _take_turn(p_now);
    perform _check_operator(p_actor, 'change licences');
    if p_name !~ '^[A-Za-z0-9._@-]{1,100}$' then
        raise exception using errcode = 'OD010',
            message = format('"%s" is not a valid licence name', p_name),
            hint = 'A name has 1 to 100 letters, digits and . _ @ -.';
    elsif p_total not between 0 and 1000000000 then
        raise exception using errcode = 'OD010',
            message = format('a licence cannot have a total of %s', p_total), hint = 'Give a total from 0 to 1000000000.';
    end if;
    insert into licence (name, total) values (p_name, p_total) on conflict (name) do update set total = excluded.total;
    insert into event (at, kind, actor, detail)
    values (p_now, 'licence_set', p_actor ->> 'user', jsonb_build_object('name', p_name, 'total', p_total));
    perform _wake();
    return (select l.item from json_array_elements(list_licences()::json) as l (item) where l.item ->> 'name' = p_name);
end;
$$;
