-- odc._score_class: a job's score by its policy's formula; the higher score comes first.
-- Within a class it never falls as the wait grows, so a class keeps the order of its queue times. It uses basic IEEE
-- operations only, so that every machine gives the same order; the caller breaks ties (queue time, id).
-- Arguments  p_ordering  a formula's name, as policy.ordering
--            p_wait_s    since it was queued, not negative
--            p_limit_s   its time limit
--            p_size      total GPUs, or total CPUs if it asks for no GPUs
--            p_fair      fair-share factor of its account and user, in millionths
--            p_static    the part of multifactor that does not change with the wait: see _plan_classes
--            p_age_weight, p_max_age_s  the age factor's weight, and the wait at which the factor is 1
-- odc         with w = wait + 4 hours: w / time limit (at least 15 minutes), which favours short jobs; plus w / 1 day, so
--             that every job moves up; plus (wait / 3 days) squared, so that after about eight days no newer job
--             comes first. The fair-share factor multiplies the sum by 1 to 3. See docs/concepts/policies.md
-- Source     wfp3: Tang et al., Fault-aware, utility-based job scheduling on Blue Gene/P (2009)
create or replace function odc._score_class(
    p_ordering text, p_wait_s float8, p_limit_s float8, p_size float8, p_fair float8, p_static float8,
    p_age_weight integer, p_max_age_s integer)
returns float8
language sql immutable as $$
    select case p_ordering
        when 'fifo' then 0
        when 'multifactor' then p_static + floor(p_age_weight * 1000000.0::float8 * least(p_wait_s, p_max_age_s) / p_max_age_s)
        when 'sjf' then -p_limit_s
        when 'saf' then -p_limit_s * p_size
        when 'wfp3' then (p_wait_s / p_limit_s) * (p_wait_s / p_limit_s) * (p_wait_s / p_limit_s) * p_size
        else (1 + 2 * (p_fair / 1000000)) * (
                 (p_wait_s + 14400) * (1 / greatest(p_limit_s, 900) + 1 / 86400.0::float8)
                 + (p_wait_s / 259200) * (p_wait_s / 259200))
    end
$$;
