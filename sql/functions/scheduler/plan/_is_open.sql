-- odc._is_open: whether a job of a class may still start or become protected in this walk over the queue. Inlined.
-- Arguments  p_reason  the limit that the class is over; null: none;  p_later, p_backfill  it is deferred to the second
--            walk; this is the second walk;  p_limit_s, p_dead  its time limit; the shape's jobs with longer limits cannot
--            start;  p_full  the shape's claims are used up;  p_preempts  its jobs may end others
create or replace function odc._is_open(
    p_reason text, p_later boolean, p_backfill boolean, p_limit_s integer, p_dead integer, p_full boolean, p_preempts boolean)
returns boolean
language sql immutable as $$
    select p_reason is null and p_later = p_backfill and (p_limit_s <= p_dead or not p_full or p_preempts)
$$;
