-- odc._claim_groups: a protected job claims each group that it may use.
-- Arguments  p_claims  two values per group: number of claims, the job that claimed it first; 0: none
create or replace function odc._claim_groups(p_claims bigint[], p_alt_groups integer[], p_from integer, p_to integer, p_job_id bigint)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    for i in p_from..p_to loop
        p_claims[2 * p_alt_groups[i] - 1] := p_claims[2 * p_alt_groups[i] - 1] + 1;
        if p_claims[2 * p_alt_groups[i]] = 0 then
            p_claims[2 * p_alt_groups[i]] := p_job_id;
        end if;
    end loop;
    return p_claims;
end;
$$;
