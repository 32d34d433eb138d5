-- odc.forget_past: delete a batch of the past before a moment, and record that the past is known only from then on.
-- Arguments  p_before  the moment
--            p_limit   maximum number of rows of each table
-- Returns    the number of deleted rows
-- Locks      term for share; past_since; the rows
-- Raises     OD020 LeadershipLost
create or replace function odc.forget_past(p_term bigint, p_before timestamptz, p_limit integer)
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_table text;
    v_more  bigint;
    v_gone  bigint := 0;
begin
    perform _hold_term(p_term);
    update past_since set at = p_before where at < p_before;
    for v_table in
        select c.relname from pg_class as c
         where c.relnamespace = 'odc'::regnamespace and c.relkind = 'r' and c.relname like '%\_past' order by c.relname
    loop
        execute format('delete from %1$I where ctid = any (array(select ctid from %1$I where past_at < $1 limit $2))', v_table)
          using p_before, p_limit;
        get diagnostics v_more = row_count;
        v_gone := v_gone + v_more;
    end loop;
    return v_gone;
end;
$$;
