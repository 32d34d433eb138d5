-- odc._build_text: the progress of a build that a reservation waits for, in words.
create or replace function odc._build_text(p_state odc.build_state, p_step text)
returns text
language sql immutable as $$
    select case p_state when 'queued' then 'its image waits to be built'
                        when 'building' then 'image: ' || coalesce(p_step, 'its build is starting') end
$$;
