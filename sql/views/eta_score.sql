-- The accuracy of expected starts, by the day of the start and by the cause of the prediction: the submission (submit),
-- the job became protected (exact), or the prediction moved. Errors are p50 - start: positive if the job started earlier.
create or replace view odc.eta_score as
select day, cause, scored,
       round(inside::numeric / scored, 4) as coverage,
       round(early::numeric / scored, 4) as early,
       round(late::numeric / scored, 4) as late,
       round(abs_error_s::numeric / scored) as mean_abs_error_s,
       round(error_s::numeric / scored) as bias_s,
       round(width_s::numeric / scored) as mean_width_s
  from odc.eta_day
 where scored > 0;
