-- odc._jobs_on: the jobs of a node in a list for people, at most 20; null: there are none.
create or replace function odc._jobs_on(p_node_id integer)
returns text
language sql stable
begin atomic
    select case when count(*) > 20 then format('%s and %s more', string_agg(j.job_id::text, ', ' order by j.job_id) filter (where j.n <= 20), count(*) - 20)
                else string_agg(j.job_id::text, ', ' order by j.job_id) end
      from (select a.job_id, row_number() over (order by a.job_id) as n
              from odc.allocation as a where a.node_id = p_node_id group by a.job_id) as j;
end;
