-- odc.measure_server: the leader, and the accuracy of expected starts; see sql/functions/cluster/measure/README.md for
-- the form.
create or replace function odc.measure_server(p_now timestamptz)
returns table (metric text, labels text[], value double precision)
language sql stable as $$
    select 'odcd_leader_term', '{}'::text[], t.term::double precision from odc.term as t
     union all
    select 'odcd_leader_since_timestamp_seconds', '{}', date_part('epoch', t.taken_at) from odc.term as t where t.taken_at is not null
     union all
    select u.metric, '{}', u.value
      from (select odc._eta_summary(p_now) as summary) as e
     cross join lateral (values ('odcd_eta_scored', (e.summary ->> 'scored')::double precision),
                                ('odcd_eta_coverage_ratio', (e.summary ->> 'coverage')::double precision),
                                ('odcd_eta_error_seconds', (e.summary ->> 'mean_abs_error_s')::double precision),
                                ('odcd_eta_bias_seconds', (e.summary ->> 'bias_s')::double precision),
                                ('odcd_eta_width_seconds', (e.summary ->> 'mean_width_s')::double precision)) as u (metric, value)
     where u.value is not null
$$;
