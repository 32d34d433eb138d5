-- What the processes of members, attempts and steps used, once they have ended. Columns without a default rewrite no table.
-- bigint[]: CPU time in user mode and in system mode in ms, the largest resident set of a process, KiB read from and
-- written to disks; null: it was not measured.
alter table allocation add column used bigint[];
alter table attempt add column used bigint[];       -- of all its members, without its steps
alter table step add column used bigint[];
