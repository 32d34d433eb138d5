-- odc._eta_summary: how the starts of the last seven days compare with the predictions made at submission.
-- Returns    JSON {scored, coverage, mean_abs_error_s, bias_s, mean_width_s, foreseen, refreshed_at}; coverage: the
--            fraction that started between p10 and p90; null if nothing was scored
create or replace function odc._eta_summary(p_now timestamptz)
returns json
language sql stable set search_path = odc, pg_temp as $$
    select json_build_object(
        'scored', coalesce(sum(d.scored), 0),
        'coverage', round(sum(d.inside)::numeric / sum(d.scored), 4),
        'mean_abs_error_s', round(sum(d.abs_error_s)::numeric / sum(d.scored)),
        'bias_s', round(sum(d.error_s)::numeric / sum(d.scored)),
        'mean_width_s', round(sum(d.width_s)::numeric / sum(d.scored)),
        'foreseen', (select count(*) from eta),
        'refreshed_at', (select _iso(max(at)) from eta))
      from eta_day as d
     where d.cause = 'submit' and d.day > (p_now at time zone 'UTC')::date - 7
$$;
