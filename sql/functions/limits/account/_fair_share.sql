-- odc._fair_share: the fair-share factor of each user, by Fair Tree. Among siblings (accounts or users), the one with the
-- higher level_fs (shares divided by the usage of everything below; infinite if unused) ranks first, with everything
-- below it. Siblings that tie merge their children, and a user ranks before an account it ties with. A user's factor is
-- the rank counted from the last user, divided by the number of users; ties have the same factor.
-- Returns    one row per account and user with an association, running jobs or past usage: 0 to 1000000; the first has
--            1000000
-- Source     R. Cox and L. Morrison, "Fair Tree", Slurm User Group 2014; slurm.schedmd.com/fair_tree.html
create or replace function odc._fair_share(p_now timestamptz)
returns table (account_id integer, uid integer, factor integer)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    return query
    with recursive leaf as materialized (
        select u.account_id, u.uid, u.used_ms,
               coalesce((select max(a.shares) from association as a
                          where a.account_id = u.account_id and a.uid = u.uid), 1) as shares
          from _used_time(p_now) as u
    ), branch as materialized (
        select a.id, a.parent, _level_key(a.shares, coalesce(sum(l.used_ms), 0)::bigint) as key
          from account as a
          join _account_lines() as t on t.ancestor_id = a.id
          left join (select account_id, sum(used_ms) as used_ms from leaf group by account_id) as l
            on l.account_id = t.account_id
         group by a.id, a.parent, a.shares
    ), path as (
        select b.id, array[b.key] as keys from branch as b where b.parent is null
         union all
        select b.id, p.keys || b.key from path as p join branch as b on b.parent = p.id
    )
    select r.account_id, r.uid, ((r.users - r.place + 1) * 1000000 / r.users)::integer
      from (select l.account_id, l.uid, count(*) over () as users,
                   rank() over (order by p.keys || _level_key(l.shares, l.used_ms)) as place
              from leaf as l
              join path as p on p.id = l.account_id) as r;
end;
$$;
