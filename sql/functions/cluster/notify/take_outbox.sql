-- odc.take_outbox: take notifications that are due, to send them now. Others do not take them for the time of p_claim, so
-- a daemon that dies while it sends delays them by that time, and then they are sent again, under the same key.
-- Arguments  p_channel  mail or webhook
--            p_limit    of webhooks, one per user: a webhook that does not answer delays only its own user
-- Returns    in order of creation; key: identifies the notification to its receiver, also after a restored backup; url: of
--            the user's webhook as it is now, null: it was removed
-- Locks      term for share; the outbox rows
-- Raises     OD020 LeadershipLost
create or replace function odc.take_outbox(
    p_term bigint, p_channel text, p_limit integer, p_claim interval, p_now timestamptz)
returns table (
    id bigint, key text, user_name text, address text, url text, kind text, job_id bigint, facts jsonb, tries integer,
    created_at timestamptz)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    return query
    with due as materialized (
        select o.id
          from outbox as o
         where p_channel = 'mail' and o.channel = 'mail' and o.next_at <= p_now
         order by o.next_at, o.id
         limit p_limit
    ), first as materialized (
        select f.id
          from (select distinct o.uid from outbox as o
                 where p_channel = 'webhook' and o.channel = 'webhook' and o.next_at is not null) as u
         cross join lateral (
               select o.id, o.next_at from outbox as o
                where o.uid = u.uid and o.channel = 'webhook' and o.next_at is not null
                order by o.id limit 1) as f
         where f.next_at <= p_now
         order by f.next_at, f.id
         limit p_limit
    ), taken as (
        update outbox as o
           set next_at = p_now + p_claim, tries = o.tries + 1
         where o.id = any (array(select d.id from due as d union all select f.id from first as f))
           and o.next_at <= p_now       -- else another session has taken it meanwhile
        returning o.*
    )
    select t.id, format('odc-%s-%s', t.id, (extract(epoch from t.created_at) * 1000000)::bigint), t.user_name, t.address, h.url,
           t.kind, t.job_id, t.facts, t.tries, t.created_at
      from taken as t
      left join webhook as h on h.uid = t.uid and t.channel = 'webhook'
     order by t.id;
end;
$$;
