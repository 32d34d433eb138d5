-- odc._plan_licences: the licences that classes of pending jobs need, and how many are left, in the form of
-- _plan_limits. Without licences it reads one empty table and returns nulls.
-- Arguments  p_class_shapes  shape ids, one per class;  p_what_if  as in decide, where a shape is negative: -1, -2, …
-- Returns    use_from, use_to  per class its span of use_*, counted from 1; from > to if it needs none
--            use_bucket, use_need  a licence, and how many of it one job of the class needs
--            left, consumes, reasons  per licence: how many are left; true; Slurm's name;  whats  its name
create or replace function odc._plan_licences(
    p_class_shapes integer[], p_what_if jsonb default null,
    out use_from integer[], out use_to integer[], out use_bucket integer[], out use_need bigint[],
    out "left" bigint[], out consumes boolean[], out reasons text[], out whats text[])
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if not exists (select from licence)
       or not exists (select from shape as s where s.id = any (p_class_shapes) and s.licences is not null)
       and not exists (select from jsonb_array_elements(p_what_if) as w (body) where jsonb_typeof(w.body -> 'licences') = 'object') then
        return;
    end if;
    with asked as (
        select s.id, s.licences from shape as s where s.id = any (p_class_shapes) and s.licences is not null
         union all
        select -w.n::integer, w.body -> 'licences'
          from jsonb_array_elements(p_what_if) with ordinality as w (body, n)
         where jsonb_typeof(w.body -> 'licences') = 'object'
    ), bucket as materialized (
        select u.name, u.total - u.used as rest, row_number() over (order by u.name) as number
          from _licence_use() as u
    ), draw as materialized (
        select c.ord, b.number, n.value::bigint as need
          from unnest(p_class_shapes) with ordinality as c (shape_id, ord)
          join asked as s on s.id = c.shape_id
         cross join lateral jsonb_each_text(s.licences) as n (name, value)
          join bucket as b on b.name = n.name
    ), per_class as (
        select c.ord, count(d.ord) as uses
          from unnest(p_class_shapes) with ordinality as c (shape_id, ord)
          left join draw as d on d.ord = c.ord
         group by c.ord
    ), span as (
        select p.ord, p.uses, sum(p.uses) over (order by p.ord) as upto from per_class as p
    )
    select (select array_agg(s.upto - s.uses + 1 order by s.ord) from span as s),
           (select array_agg(s.upto order by s.ord) from span as s),
           (select coalesce(array_agg(d.number order by d.ord, d.number), '{}') from draw as d),
           (select coalesce(array_agg(d.need order by d.ord, d.number), '{}') from draw as d),
           (select array_agg(b.rest order by b.number) from bucket as b),
           (select array_agg(true) from bucket as b),
           (select array_agg('Licenses'::text) from bucket as b),
           (select array_agg(b.name order by b.number) from bucket as b)
      into use_from, use_to, use_bucket, use_need, "left", consumes, reasons, whats;
end;
$$;
