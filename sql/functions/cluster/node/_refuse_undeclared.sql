-- odc._refuse_undeclared: require a node that was declared.
-- Raises     OD012 WrongState
create or replace function odc._refuse_undeclared(p_node node)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if not p_node.declared then
        raise exception using errcode = 'OD012',
            message = format('node %s was not declared: it reports its properties itself', p_node.name),
            hint = 'To take it out of use, drain it: odcctl node drain.';
    end if;
end;
$$;
