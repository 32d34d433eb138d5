-- odc._forget_ended_reservations: delete what is only kept while a reservation waits or runs: its keys, its node port,
-- the state of its Jupyter Lab, and the last check of its activity.
create or replace function odc._forget_ended_reservations()
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    delete from box_key as k
     where not exists (select from running as r where r.job_id = k.job_id) and not exists (select from pending as p where p.job_id = k.job_id);
    delete from box_jupyter as b where not exists (select from running as r where r.job_id = b.job_id);
    delete from box_port as b where not exists (select from running as r where r.job_id = b.job_id);
    delete from box_look as b where not exists (select from running as r where r.job_id = b.job_id);
end;
$$;
