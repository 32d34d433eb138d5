-- odc._check_constraint: refuse a --constraint unless it consists of a few names joined by & and |.
-- Each pass compares every constraint with every group of nodes, name by name.
-- Raises     OD016 NotImplementedYet: parentheses, brackets, counts, negation; OD010 BadRequest
create or replace function odc._check_constraint(p_constraint text)
returns void
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_most constant integer := 32;
    v_count integer;
begin
    if p_constraint ~ '^[\w.:=/+-]+([&|][\w.:=/+-]+)*$' then
        v_count := cardinality(string_to_array(translate(p_constraint, '&', '|'), '|'));
        if v_count <= v_most then
            return;
        end if;
        raise exception using errcode = 'OD010',
            message = format('the constraint names %s features, more than %s', v_count, v_most),
            hint = 'Name fewer features, or the nodes (--nodelist, --exclude).';
    end if;
    raise exception using
        errcode = case when p_constraint ~ '[][()*!]' then 'OD016' else 'OD010' end,
        message = format('constraint "%s" is not a list of features joined by & and |', p_constraint),
        hint = 'For example "a100&nvme|h100"; & binds tighter than |. Parentheses and counts are not supported yet.';
end;
$$;
