-- odc._label: a text escaped as a label value, to stand between quotes.
create or replace function odc._label(p_text text)
returns text
language sql immutable as $$
    select replace(replace(replace(p_text, E'\\', E'\\\\'), '"', E'\\"'), E'\n', E'\\n')
$$;
