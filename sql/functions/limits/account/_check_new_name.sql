-- odc._check_new_name: refuse a name that is invalid for an account or a QOS.
-- Arguments  p_what  'account' or 'QOS', for the message
-- Raises     OD010 BadRequest
create or replace function odc._check_new_name(p_what text, p_name text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if coalesce(p_name, '') !~ '^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,99}$' then
        raise exception using errcode = 'OD010',
            message = format('"%s" is not a valid %s name', coalesce(p_name, ''), p_what),
            hint = 'A name has 1 to 100 letters, digits and _; after the first character also . @ + and -.';
    end if;
end;
$$;
