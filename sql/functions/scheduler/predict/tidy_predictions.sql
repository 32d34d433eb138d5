-- odc.tidy_predictions: delete predictions scored more than 90 days ago (their sums stay in eta_day), and run times
-- of users, names and shapes not seen for 180 days.
-- Returns    number of deleted rows
-- Locks      term for share; those rows
-- Raises     OD020 LeadershipLost
create or replace function odc.tidy_predictions(p_term bigint, p_now timestamptz)
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_gone bigint;
begin
    perform _hold_term(p_term);
    with old as (
        delete from prediction where at < p_now - interval '90 days' and not open returning id
    ), unused as (
        delete from run_time where last_at < p_now - interval '180 days' returning uid
    )
    select (select count(*) from old) + (select count(*) from unused) into v_gone;
    return v_gone;
end;
$$;
