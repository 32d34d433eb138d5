-- odc._known_as: user names with the numbers that jobs have in their stead, which came before the accounts had the names.
create or replace function odc._known_as(p_names text[])
returns text[]
language sql stable strict as $$
    select p_names || array(select distinct a.uid::text from odc.association as a where a.user_name = any (p_names))
$$;
