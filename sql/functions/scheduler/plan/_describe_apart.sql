-- odc._describe_apart: in words, that a heterogeneous job has no planned start; for all others empty. Follows _describe_need.
create or replace function odc._describe_apart(p_shape odc.shape, p_at timestamptz)
returns text
language sql immutable as $$
    select case when p_shape.components is not null and p_at is null then '; no time is in sight at which all of them fit' else '' end
$$;
