-- odc._name_key: the key of a singleton, made of its user and its name.
create or replace function odc._name_key(p_uid integer, p_name text)
returns bigint
language sql immutable as $$
    select hashtextextended(p_uid || ':' || p_name, 0);
$$;
