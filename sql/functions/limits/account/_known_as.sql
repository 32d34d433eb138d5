-- odc._known_as: user names, and the uids that jobs submitted before the names were known have in their place.
create or replace function odc._known_as(p_names text[])
returns text[]
language sql stable strict as $$
    select p_names || array(select distinct a.uid::text from odc.association as a where a.user_name = any (p_names))
$$;
