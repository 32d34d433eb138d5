-- odc._check_constraint: refuse a --constraint unless it consists of names joined by & and |.
-- Raises     OD016 NotImplementedYet: parentheses, brackets, counts, negation; OD010 BadRequest
create or replace function odc._check_constraint(p_constraint text)
returns void
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    if p_constraint ~ '^[\w.:=/+-]+([&|][\w.:=/+-]+)*$' then
        return;
    end if;
    raise exception using
        errcode = case when p_constraint ~ '[][()*!]' then 'OD016' else 'OD010' end,
        message = format('constraint "%s" is not a list of features joined by & and |', p_constraint),
        hint = 'For example "a100&nvme|h100"; & binds tighter than |. Parentheses and counts are not supported yet.';
end;
$$;
