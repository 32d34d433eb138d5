-- odc._fold_names: names as one list in Slurm's bracket form, sorted: gpu-[01-03,07],ws1. Same form as
-- odcd.slurm.hostlists.
create or replace function odc._fold_names(p_names text[])
returns text
language sql immutable as $$
    with part as (
        select distinct left(n.name, length(n.name) - length(coalesce(d.digits, ''))) as prefix,
               case when d.digits is null then 0 when d.digits like '0_%' then length(d.digits) else 1 end as width,
               d.digits::integer as number
          from unnest(p_names) as n (name)
         cross join lateral (select substring(n.name from '\d{1,9}$') as digits) as d
    ), run as (
        select prefix, width, min(number) as first, max(number) as last
          from (select p.*, number - row_number() over (partition by prefix, width order by number) as island
                  from part as p) as i
         group by prefix, width, island
    ), written as (
        select r.*, case when width = 0 then '' else lpad(first::text, greatest(width, length(first::text)), '0') end
                    || case when last > first
                            then '-' || lpad(last::text, greatest(width, length(last::text)), '0') else '' end as text
          from run as r
    )
    select string_agg(w.text, ',' order by w.prefix collate "C", w.width)
      from (select prefix, width,
                   prefix || case when count(*) = 1 and min(first) is not distinct from min(last) then min(text)
                                  else '[' || string_agg(text, ',' order by first) || ']' end as text
              from written group by prefix, width) as w
$$;
