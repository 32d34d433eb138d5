-- odc._refused_by_stored: the requests of a batch that would add more to the database than their user may add in a day.
-- The counted amount falls evenly over time, so nothing is recounted. Jobs that ended or were cancelled return nothing,
-- because the database keeps them. A user with nothing counted may send one request above the limit, and waits longer
-- then.
-- Arguments  parallel, one per request: uid, user, the user's limit in bytes per day, bytes; uid null if the request is
--            already refused, limit null if there is none
-- Returns    request: its position in the arrays, from 0
-- Locks      stored_bound by uid, to the end of the transaction: submissions of one user are serialised
create or replace function odc._refused_by_stored(
    p_uids integer[], p_users text[], p_limits bigint[], p_bytes bigint[], p_now timestamptz)
returns table (request integer, code text, message text, hint text)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    a       record;
    v_bound stored_bound;
    v_over  bigint;
begin
    for a in
        select r.uid, r.user_name, r.most, r.bytes, (r.n - 1)::integer as request
          from unnest(p_uids, p_users, p_limits, p_bytes) with ordinality as r (uid, user_name, most, bytes, n)
         where r.uid is not null and r.most is not null
         order by r.uid, r.n
    loop
        insert into stored_bound as b (uid, bytes, at) values (a.uid, 0, p_now) on conflict (uid) do nothing;
        select * into v_bound from stored_bound as b where b.uid = a.uid for update;
        v_bound.bytes := greatest(0, v_bound.bytes
            - floor(a.most * greatest(0, extract(epoch from p_now - v_bound.at)) / 86400)::bigint);
        v_over := v_bound.bytes + least(a.bytes, a.most) - a.most;
        if v_over > 0 then
            return query select a.request, 'OD042',
                format('the jobs of user %s would add more than %s MiB to the database in a day', a.user_name, a.most / 1048576),
                format('Submit this one again in %s s. Scripts and environments that are stored already add nothing; --export=NONE '
                       'leaves the environment out. Operators set the limit with ODC_USER_STORED_MIB.',
                       ceil(v_over * 86400.0 / a.most));
        else
            update stored_bound as b set bytes = v_bound.bytes + a.bytes, at = greatest(v_bound.at, p_now) where b.uid = a.uid;
        end if;
    end loop;
end;
$$;
