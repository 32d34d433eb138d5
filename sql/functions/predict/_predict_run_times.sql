-- odc._predict_run_times: how long jobs will run in all, from what alike jobs did last.
-- The first of these keys that knows at least two run times longer than the job has already run: user, name, shape
-- and limit; user, shape and limit; user and limit; user; shape and limit; limit; any job. With none of them, half of
-- what the limit leaves. Never longer than the limit.
-- The table is read by its key however small it was when the plan was made.
-- Arguments  parallel arrays, a position per job; p_elapsed_s: how long it has run, -1 if it has not begun
-- Returns    a row per position: seconds that 10, 50 and 90 % of such jobs run; level: the key's number, 8 for none
create or replace function odc._predict_run_times(
    p_uids integer[], p_name_keys bigint[], p_shape_ids integer[], p_limits_s integer[], p_elapsed_s integer[])
returns table (ord integer, p10_s integer, p50_s integer, p90_s integer, level integer)
language plpgsql stable set search_path = odc, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
    return query
    with job as (
        select j.*, case when j.elapsed_s < 0 then -1
                         else least(2147483646, j.elapsed_s * 1000000::bigint / _run_unit(j.limit_s)) end::integer as part
          from unnest(p_uids, p_name_keys, p_shape_ids, p_limits_s, p_elapsed_s) with ordinality
               as j (uid, name_key, shape_id, limit_s, elapsed_s, ord)
    ), found as (
        -- Each subquery runs only when those before it found nothing. What is left of sorted is what is still possible;
        -- its key's number goes in front.
        select j.*, coalesce(
            (select 1 || k.sorted[width_bucket(j.part, k.sorted) + 1:] from run_time as k
              where k.uid = j.uid and k.shape_id = j.shape_id and k.time_limit_s = j.limit_s and k.name_key = j.name_key
                and cardinality(k.sorted) - width_bucket(j.part, k.sorted) >= 2),
            (select 2 || k.sorted[width_bucket(j.part, k.sorted) + 1:] from run_time as k
              where k.uid = j.uid and k.shape_id = j.shape_id and k.time_limit_s = j.limit_s and k.name_key = 0
                and cardinality(k.sorted) - width_bucket(j.part, k.sorted) >= 2),
            (select 3 || k.sorted[width_bucket(j.part, k.sorted) + 1:] from run_time as k
              where k.uid = j.uid and k.shape_id = 0 and k.time_limit_s = j.limit_s and k.name_key = 0
                and cardinality(k.sorted) - width_bucket(j.part, k.sorted) >= 2),
            (select 4 || k.sorted[width_bucket(j.part, k.sorted) + 1:] from run_time as k
              where k.uid = j.uid and k.shape_id = 0 and k.time_limit_s = 0 and k.name_key = 0
                and cardinality(k.sorted) - width_bucket(j.part, k.sorted) >= 2),
            (select 5 || k.sorted[width_bucket(j.part, k.sorted) + 1:] from run_time as k
              where k.uid = -1 and k.shape_id = j.shape_id and k.time_limit_s = j.limit_s and k.name_key = 0
                and cardinality(k.sorted) - width_bucket(j.part, k.sorted) >= 2),
            (select 6 || k.sorted[width_bucket(j.part, k.sorted) + 1:] from run_time as k
              where k.uid = -1 and k.shape_id = 0 and k.time_limit_s = j.limit_s and k.name_key = 0
                and cardinality(k.sorted) - width_bucket(j.part, k.sorted) >= 2),
            (select 7 || k.sorted[width_bucket(j.part, k.sorted) + 1:] from run_time as k
              where k.uid = -1 and k.shape_id = 0 and k.time_limit_s = 0 and k.name_key = 0
                and cardinality(k.sorted) - width_bucket(j.part, k.sorted) >= 2),
            case when j.elapsed_s < j.limit_s then (
                select array[8, greatest(j.part, 0) + (t.whole - greatest(j.part, 0)) / 10,
                             greatest(j.part, 0) + (t.whole - greatest(j.part, 0)) / 2, t.whole]
                  from (values (1000000)) as t (whole) where j.part < t.whole) end,
            array[8, j.part, j.part, j.part]) as parts
          from job as j
    )
    select f.ord::integer,
           least(f.limit_s, f.parts[2 + (m.n - 1) / 10] * u.unit / 1000000)::integer,
           least(f.limit_s, (f.parts[1 + (m.n + 1) / 2]::bigint + f.parts[1 + (m.n + 2) / 2]) * u.unit / 2000000)::integer,
           least(f.limit_s, f.parts[1 + m.n - (m.n - 1) / 10] * u.unit / 1000000)::integer,
           f.parts[1]
      from found as f
     cross join lateral (select cardinality(f.parts) - 1 as n) as m
     cross join lateral (select _run_unit(f.limit_s) as unit) as u;
end;
$$;
