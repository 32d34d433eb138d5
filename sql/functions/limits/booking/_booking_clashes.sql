-- odc._booking_clashes: the other bookings that are active at some time when this one is, whatever their nodes.
-- Repetition is weekly, and an occurrence is shorter than a week. So two bookings that ever overlap after p_now do so within
-- two weeks of the moment when both have begun, or of a change of a zone's offset in the year after it.
-- Arguments  p_booking  need not be in the table; it does not clash with its own id
-- Returns    per booking its first occurrence that overlaps one of p_booking's
create or replace function odc._booking_clashes(p_booking odc.booking, p_now timestamptz)
returns table (booking_id integer, name text, starts_at timestamptz, ends_at timestamptz)
language sql stable as $$
    select b.id, b.name, o.starts_at, o.ends_at
      from odc.booking as b
     cross join lateral (select greatest(p_now, b.starts_at, p_booking.starts_at) as both) as m
     cross join lateral (
           select theirs.starts_at, theirs.ends_at
             from odc._offset_changes(array[b.zone, p_booking.zone], m.both, m.both + interval '380 days') as c (at)
             -- One week more, because a change is known to the week.
             cross join lateral odc._occurrences(p_booking.starts_at, p_booking.duration_s, p_booking.repeats,
                                                 p_booking.repeats_until, p_booking.zone, c.at, c.at + interval '22 days') as mine
             join lateral odc._occurrences(b.starts_at, b.duration_s, b.repeats, b.repeats_until, b.zone,
                                           c.at, c.at + interval '22 days') as theirs
               on theirs.starts_at < mine.ends_at and theirs.ends_at > mine.starts_at
            where least(mine.ends_at, theirs.ends_at) > p_now
            order by greatest(mine.starts_at, theirs.starts_at)
            limit 1) as o
     where b.state in ('PLANNED', 'ACTIVE') and b.id is distinct from p_booking.id
$$;
