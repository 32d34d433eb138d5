-- odc._words: the value of a filter, one word or an array of words, as text[]; null gives null.
create or replace function odc._words(p_value jsonb)
returns text[]
language sql immutable strict as $$
    select case when jsonb_typeof(p_value) = 'array'
                then array(select jsonb_array_elements_text(p_value))
                else array[p_value #>> '{}'] end;
$$;
