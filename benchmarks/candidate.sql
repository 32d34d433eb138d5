-- The candidate for the order of policy odc, loaded over odc's functions in the database of a replay.
-- p50: the predicted run time of a class: the median of the last run times of similar jobs, else half of the limit.
create function simulate.p50(p_uid integer, p_shape_id integer, p_limit_s integer)
returns integer
language sql stable set enable_seqscan = off set enable_bitmapscan = off as $$
    select coalesce(least(p_limit_s::bigint,
                          (k.sorted[(k.n + 1) / 2]::bigint + k.sorted[(k.n + 2) / 2]) * odc._run_unit(p_limit_s) / 2000000),
                    p_limit_s / 2)::integer
      from (select coalesce(
                       (select t.sorted from odc.run_time as t where t.uid = p_uid and t.shape_id = p_shape_id
                           and t.time_limit_s = p_limit_s and t.name_key = 0 and cardinality(t.sorted) >= 2),
                       (select t.sorted from odc.run_time as t where t.uid = p_uid and t.shape_id = 0
                           and t.time_limit_s = p_limit_s and t.name_key = 0 and cardinality(t.sorted) >= 2),
                       (select t.sorted from odc.run_time as t where t.uid = p_uid and t.shape_id = 0
                           and t.time_limit_s = 0 and t.name_key = 0 and cardinality(t.sorted) >= 2),
                       (select t.sorted from odc.run_time as t where t.uid = -1 and t.shape_id = p_shape_id
                           and t.time_limit_s = p_limit_s and t.name_key = 0 and cardinality(t.sorted) >= 2),
                       (select t.sorted from odc.run_time as t where t.uid = -1 and t.shape_id = 0
                           and t.time_limit_s = p_limit_s and t.name_key = 0 and cardinality(t.sorted) >= 2),
                       (select t.sorted from odc.run_time as t where t.uid = -1 and t.shape_id = 0
                           and t.time_limit_s = 0 and t.name_key = 0 and cardinality(t.sorted) >= 2)) as sorted) as f
     cross join lateral (select f.sorted, cardinality(f.sorted) as n) as k
$$;

create or replace function odc._score_class(
    p_ordering text, p_wait_s float8, p_limit_s float8, p_size float8, p_fair float8, p_static float8,
    p_age_weight integer, p_max_age_s integer)
returns float8
language sql stable as $$
    select (1 + 2 * (p_fair / 1000000)) * (
               (p_wait_s + 14400) * (least(2, greatest(0.8, 1 / sqrt(sqrt(16 * p_size / CAPACITY)))) / greatest(p_limit_s, 900)
                                     + 1 / 86400.0::float8)
               + (p_wait_s / 172800) * (p_wait_s / 172800))
$$;
