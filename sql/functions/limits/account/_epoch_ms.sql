-- odc._epoch_ms: a moment in milliseconds since 1970, as running_use adds them up.
create or replace function odc._epoch_ms(p_at timestamptz)
returns bigint
language sql stable
begin atomic
    select (date_part('epoch', p_at) * 1000)::bigint;
end;
