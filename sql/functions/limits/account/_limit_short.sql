-- odc._limit_short: the limit that a pending job waits for, in a few words, for a list of jobs; `why` adds numbers and
-- users.
-- Arguments  p_reason  as from _limit_reason, or Licenses. QOS and partitions share names, and so do accounts at all
--                      levels
--            p_qos, p_account, p_licences  of the job
create or replace function odc._limit_short(p_reason text, p_qos text, p_account text, p_licences jsonb)
returns text
language sql immutable as $$
    select case
        when p_reason = 'Licenses' then 'too few licences are free; it needs ' || translate(p_licences::text, '{}"', '')
        else case when p_reason like 'Assoc%' then 'a limit of account ' || p_account || ', or of one above it,'
                  else 'a limit of QOS ' || p_qos || ', or of the partition,' end
             || case when p_reason like '%PerJob%' then ' allows a job '
                     when p_reason like '%PerUser%' or p_reason = 'AssocMaxJobsLimit' then ' leaves its user '
                     when p_reason like '%PerAccount' then ' leaves its account '
                     else ' leaves it ' end
             || case when p_reason like '%Wall%' then 'less time'
                     when p_reason like '%Jobs%' then 'no more running jobs'
                     else case when p_reason like '%PerJob%' then 'fewer ' else 'too few ' end
                          || case when p_reason like '%Minutes%' then 'GPU-minutes' when p_reason like '%GRES%' then 'GPUs'
                                  when p_reason like '%Cpu%' then 'CPUs' else 'nodes' end end
        end
$$;
