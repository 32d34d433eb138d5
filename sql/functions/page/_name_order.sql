-- odc._name_order: a name such that n2 comes before n10: each number in it is led by how long it is.
create or replace function odc._name_order(p_name text)
returns text
language sql immutable as $$
    select regexp_replace(regexp_replace(p_name, '([0-9]+)', '0000000000\1', 'g'), '0*([0-9]{10})(?![0-9])', '\1', 'g') collate "C"
$$;
