-- odc._predict_run_times: the total run time of jobs, predicted from the last run times of similar jobs.
-- It uses the first of these keys that has at least two run times longer than the job has already run: user, name, shape
-- and limit; user, shape and limit; user and limit; user; shape and limit; limit; any job. Without any of them, half of
-- the rest of the limit. Never longer than the limit.
-- Keys are looked up once for all jobs that share them, and by index however small the table was when the plan was made.
-- Arguments  parallel arrays, a position per job; p_elapsed_s: how long it has run, -1 if it has not begun
-- Returns    a row per position: seconds within which 10, 50 and 90 % of such jobs end; level: the key's number, 8: none
create or replace function odc._predict_run_times(
    p_uids integer[], p_name_keys bigint[], p_shape_ids integer[], p_limits_s integer[], p_elapsed_s integer[])
returns table (ord integer, p10_s integer, p50_s integer, p90_s integer, level integer)
language plpgsql stable set search_path = odc, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = off as $$
#variable_conflict use_column
begin
    return query
    with job as materialized (
        select j.*, _run_unit(j.limit_s) as unit,
               case when j.elapsed_s < 0 then -1
                    else least(2147483646, j.elapsed_s * 1000000::bigint / _run_unit(j.limit_s)) end::integer as part,
               dense_rank() over (order by j.uid, j.name_key, j.shape_id, j.limit_s) as kind
          from unnest(p_uids, p_name_keys, p_shape_ids, p_limits_s, p_elapsed_s) with ordinality
               as j (uid, name_key, shape_id, limit_s, elapsed_s, ord)
    ), known as materialized (
        select j.kind,
               (select k.sorted from run_time as k
                 where k.uid = j.uid and k.shape_id = j.shape_id and k.time_limit_s = j.limit_s and k.name_key = j.name_key) as s1,
               (select k.sorted from run_time as k
                 where k.uid = j.uid and k.shape_id = j.shape_id and k.time_limit_s = j.limit_s and k.name_key = 0) as s2,
               (select k.sorted from run_time as k
                 where k.uid = j.uid and k.shape_id = 0 and k.time_limit_s = j.limit_s and k.name_key = 0) as s3,
               (select k.sorted from run_time as k
                 where k.uid = j.uid and k.shape_id = 0 and k.time_limit_s = 0 and k.name_key = 0) as s4,
               (select k.sorted from run_time as k
                 where k.uid = -1 and k.shape_id = j.shape_id and k.time_limit_s = j.limit_s and k.name_key = 0) as s5,
               (select k.sorted from run_time as k
                 where k.uid = -1 and k.shape_id = 0 and k.time_limit_s = j.limit_s and k.name_key = 0) as s6,
               (select k.sorted from run_time as k
                 where k.uid = -1 and k.shape_id = 0 and k.time_limit_s = 0 and k.name_key = 0) as s7
          from (select distinct on (kind) * from job order by kind) as j
    ), found as (
        -- The rest of `sorted` is what is still possible; the key's number is put in front.
        select j.*, case
                 when cardinality(k.s1) - width_bucket(j.part, k.s1) >= 2 then 1 || k.s1[width_bucket(j.part, k.s1) + 1:]
                 when cardinality(k.s2) - width_bucket(j.part, k.s2) >= 2 then 2 || k.s2[width_bucket(j.part, k.s2) + 1:]
                 when cardinality(k.s3) - width_bucket(j.part, k.s3) >= 2 then 3 || k.s3[width_bucket(j.part, k.s3) + 1:]
                 when cardinality(k.s4) - width_bucket(j.part, k.s4) >= 2 then 4 || k.s4[width_bucket(j.part, k.s4) + 1:]
                 when cardinality(k.s5) - width_bucket(j.part, k.s5) >= 2 then 5 || k.s5[width_bucket(j.part, k.s5) + 1:]
                 when cardinality(k.s6) - width_bucket(j.part, k.s6) >= 2 then 6 || k.s6[width_bucket(j.part, k.s6) + 1:]
                 when cardinality(k.s7) - width_bucket(j.part, k.s7) >= 2 then 7 || k.s7[width_bucket(j.part, k.s7) + 1:]
                 when j.part < 1000000 then array[8, greatest(j.part, 0) + (1000000 - greatest(j.part, 0)) / 10,
                                                  greatest(j.part, 0) + (1000000 - greatest(j.part, 0)) / 2, 1000000]
                 else array[8, j.part, j.part, j.part] end as parts
          from job as j
          join known as k on k.kind = j.kind
    )
    select f.ord::integer,
           least(f.limit_s, f.parts[2 + (m.n - 1) / 10] * f.unit / 1000000)::integer,
           least(f.limit_s, (f.parts[1 + (m.n + 1) / 2]::bigint + f.parts[1 + (m.n + 2) / 2]) * f.unit / 2000000)::integer,
           least(f.limit_s, f.parts[1 + m.n - (m.n - 1) / 10] * f.unit / 1000000)::integer,
           f.parts[1]
      from found as f
     cross join lateral (select cardinality(f.parts) - 1 as n) as m;
end;
$$;
