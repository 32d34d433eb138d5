-- odc._evidence: the evidence against a node, as a part of a sentence; see odc._judge_nodes.
create or replace function odc._evidence(
    p_gpu_type text, p_failed integer, p_ended integer, p_scripts integer, p_users integer, p_causes text[],
    p_peers_failed integer, p_peers_ended integer)
returns text
language sql stable as $$
    select format('%1$s of its last %2$s jobs %3$s (%4$s scripts of %5$s users); on other %7$s nodes, %8$s of %6$s did',
                  p_failed, p_ended,
                  case p_causes when '{failed}' then 'failed within 120 s'
                                when '{launch}' then 'could not be started'
                                when '{lost}' then 'were lost'
                                else 'failed within 120 s, could not be started or were lost' end,
                  p_scripts, p_users, p_peers_ended, p_gpu_type, p_peers_failed)
$$;
