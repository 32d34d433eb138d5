-- odc._claim_margin: how long a preemptor keeps its claim after the start that it was told: those who are to end when their
-- limits do may take their grace, too.
create or replace function odc._claim_margin()
returns interval
language sql immutable as $$ select interval '2 minutes' $$;
