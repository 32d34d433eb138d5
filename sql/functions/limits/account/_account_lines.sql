-- odc._account_lines: each account paired with itself (depth 0) and with every account above it.
create or replace function odc._account_lines()
returns table (account_id integer, ancestor_id integer, depth integer)
language sql stable as $$
    with recursive line as (
        select a.id as account_id, a.id as ancestor_id, a.parent, 0 as depth
          from odc.account as a
         union all
        select l.account_id, a.id, a.parent, l.depth + 1
          from line as l
          join odc.account as a on a.id = l.parent
         where l.depth < 100                      -- ends the recursion even if the tree had a cycle
    )
    select account_id, ancestor_id, depth from line
$$;
