-- odc._limit_amount: an amount of a limited resource, in words: '16 GPUs', '1-00:00:00'.
-- Arguments  p_amount  GPU-minutes as milliseconds, as _limit_need counts them
create or replace function odc._limit_amount(p_what text, p_amount bigint)
returns text
language sql stable as $$
    select case p_what
        when 'wall_s' then odc._duration(least(p_amount, 2147483647)::integer)
        when 'gpu_minutes' then case when p_amount >= 9000000000000000000 then 'GPUs without a time limit'
                                     else format('%s GPU-minutes', (p_amount + 59999) / 60000) end
        else p_amount || case p_what when 'jobs' then ' running job' when 'submitted' then ' submitted job'
                                     when 'gpus' then ' GPU' when 'cpus' then ' CPU' else ' node' end
                      || case when p_amount = 1 then '' else 's' end end
$$;
