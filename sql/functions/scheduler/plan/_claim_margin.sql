-- odc._claim_margin: how long a preemptor keeps its claim after its planned start: victims whose time limits end may take
-- their grace period as well.
create or replace function odc._claim_margin()
returns interval
language sql immutable as $$ select interval '2 minutes' $$;
