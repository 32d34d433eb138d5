-- odc._label: a text as a label's value is written between quotes.
create or replace function odc._label(p_text text)
returns text
language sql immutable as $$
    select replace(replace(replace(p_text, E'\\', E'\\\\'), '"', E'\\"'), E'\n', E'\\n')
$$;
