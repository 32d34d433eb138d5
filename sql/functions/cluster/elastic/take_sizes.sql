-- odc.take_sizes: the sizes that AWS is to be asked for.
-- Raises     OD020 LeadershipLost
create or replace function odc.take_sizes(p_term bigint)
returns table (group_name text, wanted integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query select g.name, g.wanted from elastic_group as g where g.wanted is not null order by g.name;
end;
$$;
