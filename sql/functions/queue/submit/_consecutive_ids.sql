-- odc._consecutive_ids: take consecutive job ids, for the components of a heterogeneous job. A sequence gives one at a time, and
-- other sessions may take some between them; then it tries again. Ids that it leaves out are never used.
-- Returns    the first of them
-- Raises     OD040 DatabaseBusy: no run of ids was found
create or replace function odc._consecutive_ids(p_count integer)
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_most  constant integer := 100000;     -- ids that may be left out
    v_first bigint := nextval('job_id_seq');
    v_last  bigint := v_first;
    v_next  bigint;
begin
    for v_taken in 1..v_most loop
        if v_last - v_first + 1 = p_count then
            return v_first;
        end if;
        v_next := nextval('job_id_seq');
        if v_next <> v_last + 1 then
            v_first := v_next;
        end if;
        v_last := v_next;
    end loop;
    raise exception using errcode = 'OD040',
        message = format('no %s consecutive job ids are free: other sessions submit too many jobs', p_count),
        hint = 'Send the request again.';
end;
$$;
