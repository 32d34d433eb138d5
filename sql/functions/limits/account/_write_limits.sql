-- odc._write_limits: set and remove limits.
-- Arguments  p_scope, p_scope_id  as resource_limit
--            p_limits  {per: {what: value}}; value null: remove the limit
-- Raises     OD010 BadRequest: no such limit, a limit that has no meaning there, or a value out of range
create or replace function odc._write_limits(p_scope text, p_scope_id integer, p_limits jsonb)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    l record;
begin
    for l in
        select p.key as per, w.key as what, w.value, case w.key when 'wall_s' then 'wall' else w.key end as name
          from jsonb_each(p_limits) as p
         cross join lateral jsonb_each(p.value) as w
         order by 1, 2
    loop
        if l.per not in ('group', 'user', 'account', 'job')
           or l.what not in ('jobs', 'submitted', 'gpus', 'gpu_minutes', 'cpus', 'nodes', 'wall_s') then
            raise exception using errcode = 'OD010',
                message = format('limit %s.%s does not exist', l.per, l.name),
                hint = 'A limit is PER.WHAT. PER: group, user, account, job. '
                       'WHAT: jobs, submitted, gpus, gpu_minutes, cpus, nodes, wall.';
        elsif _limit_reason(p_scope, l.per, l.what) is null then
            raise exception using errcode = 'OD010',
                message = format('%s cannot be limited per %s %s', l.name, l.per,
                                 case p_scope when 'qos' then 'in a QOS' when 'user' then 'for a user of an account'
                                              else 'in ' || case p_scope when 'account' then 'an account' else 'a partition' end end),
                hint = 'docs/operating/accounts-and-limits.md lists the limits of each object.';
        end if;
        delete from resource_limit as r
         where (r.scope, r.scope_id, r.per, r.what) = (p_scope, p_scope_id, l.per, l.what);
        if l.value <> 'null' then
            begin
                insert into resource_limit (scope, scope_id, per, what, value)
                values (p_scope, p_scope_id, l.per, l.what, (l.value #>> '{}')::bigint);
            exception when check_violation or numeric_value_out_of_range or invalid_text_representation then
                raise exception using errcode = 'OD010',
                    message = format('limit %s.%s cannot be %s', l.per, l.name, l.value),
                    hint = 'Give a whole number from 0 to 1000000000000, or none to remove the limit.';
            end;
        end if;
    end loop;
end;
$$;
