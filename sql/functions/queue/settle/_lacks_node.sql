-- odc._lacks_node: whether a node of a running job is down, and no operator took it down.
create or replace function odc._lacks_node(p_job_id bigint)
returns boolean
language sql stable
begin atomic
    select exists (
        select from odc.allocation as a
          join odc.node as n on n.id = a.node_id
         where a.job_id = p_job_id and n.state = 'DOWN' and n.reason_by is null);
end;
