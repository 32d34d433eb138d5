-- odc._owns_booking: whether jobs of a user and an account may run in a booking.
-- Arguments  p_account_id  the job's account; null: any that the user has used or belongs to
create or replace function odc._owns_booking(p_booking odc.booking, p_uid integer, p_account_id integer)
returns boolean
language sql stable as $$
    with recursive line (id) as (
        select m.id
          from (select p_account_id as id where p_account_id is not null
                 union select s.account_id from odc.association as s where p_account_id is null and s.uid = p_uid
                 union select u.account_id from odc.usage as u where p_account_id is null and u.uid = p_uid) as m
         where p_booking.account_ids <> '{}'
        union
        select a.parent from line as l join odc.account as a on a.id = l.id where a.parent is not null
    )
    select p_uid = any (p_booking.uids) or exists (select from line as l where l.id = any (p_booking.account_ids))
$$;
