create or replace function odc._why_limits(p_job_id bigint, p_now timestamptz) returns table (cause text, reason text, text text, "limit" text, job_id bigint, gpus integer, until timestamptz)
language sql stable as $$ select ''::text, ''::text, ''::text, ''::text, 1::bigint, 1, p_now where false $$;
