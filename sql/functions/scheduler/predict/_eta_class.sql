-- odc._eta_class: outcomes of plans are collected by how long a wait the plan told: up to 5, 10, 20, 40 minutes, …
-- Returns    1, 2, …; class 0, all plans, is not among them
create or replace function odc._eta_class(p_plan_s integer)
returns integer
language sql immutable as $$
    select 1 + width_bucket(p_plan_s, array[
        300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 76800, 153600, 307200, 614400, 1228800, 2457600])
$$;
