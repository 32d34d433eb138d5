-- odc._refuse_change_of_ended: terminal states are final. Trigger on job, before update of its end.
create or replace function odc._refuse_change_of_ended()
returns trigger
language plpgsql set search_path = odc, pg_temp as $$
begin
    raise exception using errcode = 'OD012',
        message = format('job %s has ended as %s, which cannot change', old.id, old.state),
        hint = 'Submit it again to run it again.';
end;
$$;
