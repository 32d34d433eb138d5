-- odc._policy_version: the rules by which a pass decides: a digest of the planning functions and of the rows that
-- configure them. Limits and usage of users and accounts are not rules but a pass's input.
create or replace function odc._policy_version()
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return (select left(encode(sha256(convert_to(concat_ws(
                       E'\n',
                       (select l.digest from planner as l),
                       (select string_agg(y::text, E'\n' order by y.name) from policy as y),
                       (select string_agg(concat_ws(' ', t.id, t.state, t.policy, t.placement, t.tier), E'\n' order by t.id)
                          from partition as t),
                       (select string_agg(w::text, E'\n' order by w.factor) from priority_weight as w),
                       (select string_agg(s::text, E'\n') from priority_setting as s)), 'UTF8')), 'hex'), 16));
end;
$$;
