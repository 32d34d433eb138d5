-- odc._run_name: a job's name as a number, for grouping run times. Digits are ignored, so train-1 and train-2
-- are one kind of job. Never 0, which means any name.
create or replace function odc._run_name(p_name text)
returns bigint
language sql immutable as $$
    select hashtextextended(translate(p_name, '0123456789', ''), 0) | 1
$$;
