-- odc._cron_json: a user's recurring jobs.
-- Returns    JSON text, see show_cron
create or replace function odc._cron_json(p_uid integer, p_user text)
returns text
language sql stable as $$
    select json_build_object(
               'user', p_user, 'text', t.content, 'zone', t.zone, 'set_at', odc._iso(t.set_at),
               'entries', coalesce((
                   select json_agg(json_build_object(
                              'first_line', e.first_line, 'line', e.line, 'schedule', e.schedule, 'zone', e.zone,
                              'command', e.request ->> 'command', 'next_at', odc._iso(e.next_at),
                              'last_at', odc._iso(e.last_at), 'last_result', e.last_result, 'last_why', e.last_why,
                              'last_job_id', e.last_job_id,
                              'last_job_state', coalesce(
                                  (select 'PENDING' from odc.pending as p where p.job_id = e.last_job_id),
                                  (select r.state::text from odc.running as r where r.job_id = e.last_job_id),
                                  (select j.state::text from odc.job as j where j.id = e.last_job_id)),
                              'skipped', e.skipped, 'disabled_at', odc._iso(e.disabled_at), 'disabled_by', e.disabled_by,
                              'disabled_why', e.disabled_why) order by e.line)
                     from odc.cron_entry as e where e.uid = p_uid), '[]'))::text
      from (values (p_uid)) as u (uid)
      left join odc.cron_table as t on t.uid = u.uid
$$;
