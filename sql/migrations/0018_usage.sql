-- What was used from one time to another. Attempts are written as they end, so that this index stays small.
create index attempt_ended on attempt using brin (ended_at);
