-- odc._is_passing_error: whether an error has nothing to do with the row that was processed: the term is over, a lock or
-- the time ran out, another transaction conflicted, or PostgreSQL stops or lacks space.
-- Arguments  p_state  SQLSTATE
create or replace function odc._is_passing_error(p_state text)
returns boolean
language sql immutable as $$
    select p_state in ('OD020', '55P03', '57014', '40001', '40P01') or left(p_state, 2) in ('08', '25', '53', '57', '58')
$$;
