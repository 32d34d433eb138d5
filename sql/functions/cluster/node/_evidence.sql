-- odc._evidence: the evidence against a node, as a part of a sentence; see odc._judge_nodes.
create or replace function odc._evidence(
    p_gpu_type text, p_failed integer, p_ended integer, p_scripts integer, p_users integer, p_causes text[],
    p_peers_failed integer, p_peers_ended integer)
returns text
language sql stable as $$
    select format('%s of its last %s jobs %s (%s scripts of %s users); of %s on other %s nodes %s did',
                  p_failed, p_ended,
                  case p_causes when '{failed}' then 'failed within 120 s'
                                when '{launch}' then 'could not be started'
                                when '{lost}' then 'were lost'
                                else 'failed within 120 s, could not be started or were lost' end,
                  p_scripts, p_users, p_peers_ended, p_gpu_type, p_peers_failed)
$$;
