-- odc._local_instant: the first moment at which clocks of a zone show a local time or a later one. Of a time that clocks
-- show twice in autumn, that is the first one; of a time that they skip in spring, the end of the gap.
-- Arguments  p_local  a whole minute
create or replace function odc._local_instant(p_local timestamp, p_zone text)
returns timestamptz
language sql stable
begin atomic
    -- PostgreSQL takes the second of two, and counts a skipped time from the offset before the gap: never too early.
    select case when (i.at - interval '24 hours') at time zone p_zone = p_local - interval '24 hours'
                 and i.at at time zone p_zone = p_local then i.at
                else (select min(m.at)
                        from generate_series(i.at - interval '24 hours', i.at, interval '1 minute') as m (at)
                       where m.at at time zone p_zone >= p_local) end
      from (select p_local at time zone p_zone as at) as i;
end;
