-- odc._limit_reason: Slurm's name for a limit that keeps a job from starting, or from being submitted. A partition's
-- limits have the names of QOS limits, as with Slurm's partition QOS. Null: there is no such limit.
-- Source     slurm.schedmd.com/job_reason_codes.html
create or replace function odc._limit_reason(p_scope text, p_per text, p_what text)
returns text
language sql immutable as $$
    select case
        when p_scope = 'partition' and p_per = 'group' and p_what = 'gpu_minutes' then null
        when p_scope in ('qos', 'partition') then
            case p_per
                when 'group' then
                    case p_what when 'jobs' then 'QOSGrpJobsLimit' when 'submitted' then 'QOSGrpSubmitJobsLimit'
                                when 'gpus' then 'QOSGrpGRES' when 'gpu_minutes' then 'QOSGrpGRESMinutes'
                                when 'cpus' then 'QOSGrpCpuLimit' when 'nodes' then 'QOSGrpNodeLimit' end
                when 'user' then
                    case p_what when 'jobs' then 'QOSMaxJobsPerUserLimit' when 'submitted' then 'QOSMaxSubmitJobPerUserLimit'
                                when 'gpus' then 'QOSMaxGRESPerUser' when 'cpus' then 'QOSMaxCpuPerUserLimit'
                                when 'nodes' then 'QOSMaxNodePerUserLimit' end
                when 'account' then
                    case p_what when 'jobs' then 'MaxJobsPerAccount' when 'submitted' then 'MaxSubmitJobsPerAccount'
                                when 'gpus' then 'MaxGRESPerAccount' when 'cpus' then 'MaxCpuPerAccount'
                                when 'nodes' then 'MaxNodePerAccount' end
                else
                    case p_what when 'wall_s' then 'QOSMaxWallDurationPerJobLimit' when 'gpus' then 'QOSMaxGRESPerJob'
                                when 'gpu_minutes' then 'QOSMaxGRESMinutesPerJob' when 'cpus' then 'QOSMaxCpuPerJobLimit'
                                when 'nodes' then 'QOSMaxNodePerJobLimit' end
            end
        when p_per = 'account' or p_scope = 'user' and p_per = 'user' then null
        when p_per = 'job' then
            case p_what when 'wall_s' then 'AssocMaxWallDurationPerJobLimit' when 'gpus' then 'AssocMaxGRESPerJob'
                        when 'gpu_minutes' then 'AssocMaxGRESMinutesPerJob' when 'cpus' then 'AssocMaxCpuPerJobLimit'
                        when 'nodes' then 'AssocMaxNodePerJobLimit' end
        else
            case p_what when 'gpus' then 'AssocGrpGRES' when 'gpu_minutes' then 'AssocGrpGRESMinutes'
                        when 'cpus' then 'AssocGrpCpuLimit' when 'nodes' then 'AssocGrpNodeLimit'
                        when 'jobs' then
                            case when p_scope = 'account' and p_per = 'group' then 'AssocGrpJobsLimit' else 'AssocMaxJobsLimit' end
                        when 'submitted' then
                            case when p_scope = 'account' and p_per = 'group' then 'AssocGrpSubmitJobsLimit'
                                 else 'AssocMaxSubmitJobLimit' end end
        end
$$;
