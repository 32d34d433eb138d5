-- odc._count_outcome: how many of the answers to a change have this outcome.
create or replace function odc._count_outcome(p_answers text, p_outcome text)
returns bigint
language sql immutable as $$
    select count(*) from json_array_elements(p_answers::json) as a (one) where a.one ->> 'outcome' = p_outcome
$$;
