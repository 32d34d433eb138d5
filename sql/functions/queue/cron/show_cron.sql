-- odc.show_cron: the recurring jobs of the caller, or, for operators, of another user.
-- Arguments  p_user  null: the caller
-- Returns    JSON text {user, text, zone, set_at, entries: [{first_line, line, schedule, zone, command, next_at, last_at,
--            last_result, last_why, last_job_id, last_job_state, skipped, disabled_at, disabled_by, disabled_why}]}; the user
--            has none: text, zone and set_at are null. first_line to line: the lines of an entry, with its options
-- Raises     OD013 NotOwner
create or replace function odc.show_cron(p_actor jsonb, p_user text)
returns text
language sql stable as $$
    select odc._cron_json(odc._find_cron_user(p_actor, p_user), coalesce(p_user, p_actor ->> 'user'))
$$;
