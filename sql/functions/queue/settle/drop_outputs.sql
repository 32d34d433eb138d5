-- odc.drop_outputs: replace kept output above a total by a note: first of the user with the most, and of one user the
-- oldest. Nothing is read while the table is smaller than that. It does not shrink at once, but its space is used again.
-- Arguments  p_most_bytes  of all kept output, as it is stored
--            p_note        the note, compressed by zlib
-- Returns    the number of members whose output was replaced
-- Locks      term for share; kept_output rows
-- Raises     OD020 LeadershipLost
create or replace function odc.drop_outputs(p_term bigint, p_most_bytes bigint, p_note bytea)
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_gone bigint;
begin
    perform _hold_term(p_term);
    if pg_table_size('odc.kept_output') <= p_most_bytes then
        return 0;
    end if;
    with kept as (
        select k.job_id, k.attempt, k.rank, octet_length(k.content) as bytes,
               sum(octet_length(k.content)) over (partition by j.uid order by k.kept_at desc, k.job_id, k.attempt, k.rank) as of_user
          from kept_output as k
          join job as j on j.id = k.job_id
         where octet_length(k.content) > octet_length(p_note)
    ), placed as (
        select e.*, sum(e.bytes) over (order by e.of_user, e.job_id, e.attempt, e.rank) as so_far from kept as e
    )
    update kept_output as k set content = p_note
      from placed as p
     where k.job_id = p.job_id and k.attempt = p.attempt and k.rank = p.rank and p.so_far > p_most_bytes;
    get diagnostics v_gone = row_count;
    return v_gone;
end;
$$;
