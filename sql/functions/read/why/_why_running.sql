-- odc._why_running: the running jobs that keep a job from its nodes, with a sentence about each.
-- Arguments  p_node_names  the nodes it is to get
--            p_at          when it would start there if no job ended early; null: never
--            p_gone        jobs that no longer count
-- Returns    one row per job and per equal amount on its nodes, in the order of _why_holders: node, the only one or null;
--            gpus, on all of them; until, when it ends at the latest
create or replace function odc._why_running(
    p_job_id bigint, p_node_names text[], p_at timestamptz, p_gone bigint[], p_now timestamptz)
returns table (job_id bigint, text text, node text, gpus integer, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    return query
        select h.job_id, _holder_text(h.job_id, h.gpus, h.cpus, h.names, h.nodes, h.until, p_job_id, p_now),
               case when h.nodes = 1 then h.names end, (h.gpus * h.nodes)::integer, h.until
          from (select w.job_id, w.gpus, w.cpus, w.until, count(*) as nodes,
                       _fold_names(array_agg(w.node order by w.place)) as names, min(w.place) as place
                  from _why_holders(p_job_id, p_node_names, p_at, p_gone) with ordinality
                       as w (job_id, node, gpus, cpus, until, place)
                 group by w.job_id, w.gpus, w.cpus, w.until) as h
         order by h.place;
end;
$$;
