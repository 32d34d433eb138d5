-- odc._unknown_hint: what to do about an id that names no job.
create or replace function odc._unknown_hint(p_job_id bigint)
returns text
language sql stable as $$
    select coalesce(
        (select format('It is component %s+%s of a heterogeneous job: name job %s.', l.id, p_job_id - l.id, l.id)
           from odc._leader_of(p_job_id) as l (id)
          where l.id is not null),
        '`odcctl queue -t all` lists all jobs.')
$$;
