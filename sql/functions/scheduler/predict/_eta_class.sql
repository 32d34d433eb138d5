-- odc._eta_class: the class by which outcomes of plans are collected: the planned wait, up to 5, 10, 20, 40 minutes, …
-- Returns    1, 2, …; never class 0, which has all plans
create or replace function odc._eta_class(p_plan_s integer)
returns integer
language sql immutable as $$
    select 1 + width_bucket(p_plan_s, array[
        300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 76800, 153600, 307200, 614400, 1228800, 2457600])
$$;
