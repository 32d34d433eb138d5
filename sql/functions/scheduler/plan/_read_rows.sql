-- odc._read_rows: read more rows of a class and put them into the queue.
-- Arguments  p_class  the class;  p_row  the last row that was read of it;  p_count  how many rows to read at most
--            p_skip  jobs that are not in the queue;  p_digest, p_queue_digest  whether to compute digests, and the last one
--            p_job_ids … p_scores  per row, see _plan_slice;  p_queue  see _next_candidate
-- Returns    the rows and the queue, with the new ones; classes: of the new ones; read_count: how many to read the next time;
--            null: there were none
create or replace function odc._read_rows(
    p_now timestamptz, p_backfill boolean, p_class odc.class_facts, p_row integer, p_count integer, p_skip bigint[], p_digest boolean,
    inout p_queue_digest bigint, inout p_queue integer[], inout p_job_ids bigint[], inout p_ats timestamptz[],
    inout p_counts integer[], inout p_leads bigint[], inout p_scores float8[], out classes integer[], out read_count integer)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_many constant integer := 32;
    v_rows record;  v_first constant integer := cardinality(p_job_ids) + 1;
begin
    v_rows := _plan_more(
        p_now, p_backfill, p_count, p_skip, p_ats[p_row], p_job_ids[p_row], p_class.shape_id, p_class.limit_s, p_class.uid,
        p_class.account_id, p_class.qos_id, p_class.nice, p_class.tier, p_class.ordering, p_class.depth, p_class.max_wait_s,
        p_class.backfill, p_class.size, p_class.fair, p_class.static, p_class.age_weight, p_class.max_age_s);
    p_queue_digest := case when p_digest then hash_record_extended(v_rows, p_queue_digest) end;
    if v_rows.job_ids is not null then
        read_count := v_many;
        p_job_ids := p_job_ids || v_rows.job_ids;  p_ats := p_ats || v_rows.queued_ats;  p_counts := p_counts || v_rows.counts;
        p_leads := p_leads || v_rows.leads;  p_scores := p_scores || v_rows.scores;
        classes := array_fill(p_class.class, array[cardinality(v_rows.job_ids)]);
        p_queue := p_queue[:2] || _queue_run(p_queue[3:], v_first, cardinality(p_job_ids), p_leads, p_scores, p_ats, p_job_ids);
    end if;
end;
$$;
