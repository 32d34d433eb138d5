-- odc._full_group: the first of a shape's groups that has its maximum number of claims by protected jobs; null: none.
create or replace function odc._full_group(p_alt_groups integer[], p_from integer, p_to integer, p_claims bigint[], p_depth integer)
returns integer
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    for i in p_from..p_to loop
        if p_claims[2 * p_alt_groups[i] - 1] >= p_depth then
            return p_alt_groups[i];
        end if;
    end loop;
    return null;
end;
$$;
