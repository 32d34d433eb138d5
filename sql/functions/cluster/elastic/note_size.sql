-- odc.note_size: record AWS's answer to a requested size.
-- Arguments  p_failure  why AWS refused; null: it did as requested
-- Raises     OD020 LeadershipLost
create or replace function odc.note_size(p_term bigint, p_group text, p_size integer, p_failure text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    if p_failure is not null then
        perform _fail_launch(p_group, p_failure, p_now);
    end if;
    update elastic_group
       set wanted = null, desired = case when p_failure is null then p_size else desired end
     where name = p_group and wanted = p_size;
end;
$$;
