-- odc._edit_policy: the policy with these changes applied; everything else stays.
-- Arguments  p_changes  {ordering, max_wait_s (null: none), backfill, plan_depth}
-- Raises     OD010 BadRequest
create or replace function odc._edit_policy(p_policy policy, p_changes jsonb)
returns policy
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    y       policy := p_policy;
    v_wrong text;
begin
    select string_agg(format('%s %s', c.key, c.value), ', ' order by c.key) into v_wrong
      from jsonb_each_text(p_changes) as c (key, value)
     where case c.key
               when 'ordering' then coalesce(c.value, '') not in ('fifo', 'multifactor', 'sjf', 'saf', 'wfp3', 'odc')
               when 'backfill' then coalesce(c.value, '') not in ('order', 'fifo', 'sjbf', 'safbf')
               when 'max_wait_s' then c.value::bigint not between 1 and 2147483647
               when 'plan_depth' then c.value is null or c.value::bigint not between 0 and 1000000
               else false end;
    if v_wrong is not null then
        raise exception using errcode = 'OD010',
            message = format('a policy cannot have %s', v_wrong),
            hint = 'Orderings: fifo, multifactor, sjf, saf, wfp3, odc. Backfill: order, fifo, sjbf, safbf. '
                   'The maximum wait is above 0. Depth: 0 to 1000000.';
    end if;
    y.ordering := coalesce(p_changes ->> 'ordering', y.ordering);
    y.max_wait_s := case when p_changes ? 'max_wait_s' then (p_changes ->> 'max_wait_s')::integer else y.max_wait_s end;
    y.backfill := coalesce(p_changes ->> 'backfill', y.backfill, 'order');
    y.plan_depth := coalesce((p_changes ->> 'plan_depth')::integer, y.plan_depth, 1);
    return y;
end;
$$;
