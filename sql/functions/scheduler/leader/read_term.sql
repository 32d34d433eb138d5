-- odc.read_term: the current leader. vacant: the holder released the term, or the connection of its passes is gone;
-- a caller may then take the term without waiting for the lease.
create or replace function odc.read_term()
returns table (term bigint, beat bigint, holder text, host text, vacant boolean)
language sql stable as $$
    select t.term, t.beat, t.holder, t.host,
           t.holder is null or not exists (
               select from pg_stat_activity as a
                where a.pid = t.backend_pid and a.application_name like 'odcd-leader%'
                  and (t.tokens = '{}' or substring(a.application_name from '[^ ]+$') = any (t.tokens))
                  and a.datname = current_database())
      from odc.term as t;
$$;
