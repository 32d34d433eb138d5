-- odc.list_shares: the account tree with the shares, usage and rank of each account and user.
-- Arguments  p_now   usage is decayed to this moment
-- Returns    JSON {at, half_life_s, used_s, shares: [{account, user, uid, depth, raw_shares, norm_shares, used_s,
--            effective_usage, level_fs, fairshare}]}, each account before its children. used_s: GPU-seconds as
--            billed. norm_shares, effective_usage: as a fraction of its siblings' total; level_fs: norm_shares divided by
--            effective_usage, null if nothing was used. fairshare: the factor, 0 to 1, for users only.
create or replace function odc.list_shares(p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return (
        with recursive leaf as materialized (
            select u.account_id, u.uid, u.used_ms, f.factor,
                   coalesce((select max(m.shares) from association as m where m.account_id = u.account_id and m.uid = u.uid), 1) as shares
              from _used_time(p_now) as u
              left join _fair_share(p_now) as f on f.account_id = u.account_id and f.uid = u.uid
        ), tree as (
            select a.id, a.name, array[a.name] as path, 0 as depth from account as a where a.parent is null and a.deleted_at is null
             union all
            select a.id, a.name, t.path || a.name, t.depth + 1
              from tree as t join account as a on a.parent = t.id and a.deleted_at is null
        ), line as (
            select t.path, t.depth, t.name, null::integer as uid, coalesce(a.parent, 0) as above, a.shares, null::integer as factor,
                   coalesce((select sum(f.used_ms) from leaf as f join _account_lines() as n on n.account_id = f.account_id
                              where n.ancestor_id = t.id), 0) as used_ms
              from tree as t join account as a on a.id = t.id
             union all
            select t.path, t.depth + 1, t.name, f.uid, t.id, f.shares, f.factor, f.used_ms
              from leaf as f join tree as t on t.id = f.account_id
        ), norm as (
            select l.*, l.shares::float8 / nullif(sum(l.shares) over (partition by l.above), 0) as norm_shares,
                   (l.used_ms / nullif(sum(l.used_ms) over (partition by l.above), 0))::float8 as part
              from line as l
        )
        select json_build_object(
                   'at', _iso(p_now),
                   'half_life_s', (select half_life_s from priority_setting),
                   'used_s', coalesce((select sum(used_ms) from leaf), 0)::bigint / 1000,
                   'shares', coalesce(json_agg(json_build_object(
                       'account', n.name,
                       'user', case when n.uid is not null then _user_name(n.uid) end,
                       'uid', n.uid,
                       'depth', n.depth,
                       'raw_shares', n.shares,
                       'norm_shares', round(coalesce(n.norm_shares, 0)::numeric, 6)::float8,
                       'used_s', (n.used_ms / 1000)::bigint,
                       'effective_usage', round(coalesce(n.part, 0)::numeric, 6)::float8,
                       'level_fs', case when n.part > 0 then round((coalesce(n.norm_shares, 0) / n.part)::numeric, 6)::float8 end,
                       'fairshare', n.factor / 1000000.0::float8)
                       order by n.path, n.uid nulls first), '[]'))::text
          from norm as n);
end;
$$;
