-- The accuracy of expected starts, by day: see odc.eta_score.
create or replace view odc_report.eta_score as
select day, cause, scored, coverage, early, late, mean_abs_error_s, bias_s, mean_width_s from odc.eta_score;
