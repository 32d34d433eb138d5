-- odc.forget_texts: delete scripts and environments that were last used before the oldest remaining job was submitted.
-- Arguments  p_limit  maximum number of texts
-- Returns    the number of deleted texts
-- Locks      term for share; the rows
-- Raises     OD020 LeadershipLost
create or replace function odc.forget_texts(p_term bigint, p_limit integer, p_now timestamptz)
returns integer
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_before timestamptz;
    v_gone   integer;
begin
    perform _hold_term(p_term);
    -- Uses are recorded once a day, and a submission may be in progress.
    v_before := least(p_now, (select j.submitted_at from job as j order by j.id limit 1)) - interval '2 days';
    delete from job_text as t
     where t.digest = any (array(select o.digest from job_text as o where o.used_at < v_before limit p_limit))
       and t.used_at < v_before;
    get diagnostics v_gone = row_count;
    return v_gone;
end;
$$;
