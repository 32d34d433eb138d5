-- odc._matches_features: whether a node with these features satisfies a --constraint.
-- Arguments  p_constraint  names joined by & and |; & binds tighter; null: no constraint
create or replace function odc._matches_features(p_constraint text, p_features text[])
returns boolean
language sql immutable as $$
    select p_constraint is null or exists (
        select from unnest(string_to_array(p_constraint, '|')) as either
         where string_to_array(either, '&') <@ p_features)
$$;
