-- odc._name_order: a sort key with which n2 comes before n10: each number in the name is padded with zeros.
-- Most names have one number, at their end: a single regular expression handles them in a fifth of the time.
create or replace function odc._name_order(p_name text)
returns text
language sql immutable as $$
    select case when p_name ~ '^[^0-9]*[0-9]{1,10}$'
                then rtrim(p_name, '0123456789') || lpad(substr(p_name, 1 + length(rtrim(p_name, '0123456789'))), 10, '0')
                else regexp_replace(regexp_replace(p_name, '([0-9]+)', '0000000000\1', 'g'),
                                    '0*([0-9]{10})(?![0-9])', '\1', 'g') end collate "C"
$$;
