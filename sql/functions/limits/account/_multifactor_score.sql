-- odc._multifactor_score: a job's priority: the sum of each factor times its weight, minus nice. Inlined.
-- Arguments  p_wait_s       since it was queued; the age factor is this divided by p_max_age_s, at most 1
--            p_size, p_fair, p_qos, p_partition: factors in millionths; p_nice in points
-- Returns    millionths of a point, so that a second of age counts; the highest starts first
-- Source     Slurm's multifactor plugin: slurm.schedmd.com/priority_multifactor.html
create or replace function odc._multifactor_score(
    p_wait_s bigint, p_size integer, p_fair integer, p_qos integer, p_partition integer, p_nice integer,
    p_w_age integer, p_w_size integer, p_w_fair integer, p_w_qos integer, p_w_partition integer,
    p_max_age_s integer)
returns bigint
language sql immutable as $$
    select least(greatest(p_wait_s, 0), p_max_age_s) * p_w_age * 1000000 / p_max_age_s
         + p_w_size::bigint * p_size + p_w_fair::bigint * p_fair + p_w_qos::bigint * p_qos
         + p_w_partition::bigint * p_partition - p_nice * 1000000::bigint
$$;
