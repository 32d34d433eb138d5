-- odc.disable_cron: disable the entries that started these jobs. They stay in the text, as comments, until the user
-- enables them by editing it.
-- Arguments  p_job_ids  the last jobs of entries of the caller, or, for operators, of anyone
-- Returns    the jobs whose entries are disabled now
-- Locks      cron_entry
create or replace function odc.disable_cron(p_actor jsonb, p_job_ids bigint[], p_now timestamptz)
returns bigint[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_jobs bigint[];
begin
    perform from cron_entry where last_job_id = any (p_job_ids) order by id for update;
    with done as (
        update cron_entry as c
           set next_at = null, disabled_at = p_now, disabled_by = p_actor ->> 'user',
               disabled_why = format('job %s was cancelled with --cron', c.last_job_id)
         where c.last_job_id = any (p_job_ids) and c.disabled_at is null
           and ((p_actor ->> 'operator')::boolean or c.uid = (p_actor ->> 'uid')::integer)
        returning c.*
    ), noted as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'cron_disabled', p_actor ->> 'user', d.last_job_id,
               jsonb_build_object('user', t.user_name, 'line', d.line, 'why', d.disabled_why)
          from done as d join cron_table as t on t.uid = d.uid order by d.id
    )
    select array_agg(d.last_job_id order by d.id) into v_jobs from done as d;
    return coalesce(v_jobs, '{}');
end;
$$;
