-- odc._goes_before: whether one job comes before another in the order of _rank_job. Inlined.
create or replace function odc._goes_before(
    p_lead bigint, p_score float8, p_queued_at timestamptz, p_job_id bigint,
    p_other_lead bigint, p_other_score float8, p_other_queued_at timestamptz, p_other_job_id bigint)
returns boolean
language sql immutable as $$
    select p_lead < p_other_lead
           or (p_lead = p_other_lead
               and (p_score > p_other_score
                    or (p_score = p_other_score
                        and (p_queued_at < p_other_queued_at
                             or (p_queued_at = p_other_queued_at and p_job_id < p_other_job_id)))))
$$;
