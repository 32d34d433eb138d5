-- odc._divide: refuse a total that its parts do not divide evenly.
-- Arguments  p_name, p_part_name  the options that gave them
-- Raises     OD010 BadRequest
create or replace function odc._divide(p_name text, p_total bigint, p_part_name text, p_part bigint)
returns void
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    if p_total % p_part <> 0 then
        raise exception using errcode = 'OD010',
            message = format('%s %s is not a multiple of %s %s', p_name, p_total, p_part_name, p_part),
            hint = format('Request %s, or leave one of the two out.',
                          concat_ws(' or ', p_total - p_total % p_part + p_part,
                                    nullif(p_total - p_total % p_part, 0)));
    end if;
end;
$$;
