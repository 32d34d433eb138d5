-- odc._find_pass: a stored pass, by its number, or the last one at or before a moment.
-- Raises     OD030 UnknownPass: it does not exist, is no longer kept, or is from before a restore
create or replace function odc._find_pass(p_pass_id bigint, p_at timestamptz default null)
returns odc.pass
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_pass  pass;
    v_first bigint;
begin
    select * into v_pass from pass as s
     where case when p_pass_id is null then s.at <= p_at else s.id = p_pass_id end
     order by s.at desc, s.id desc
     limit 1;
    if v_pass.snapshot is not null then
        return v_pass;
    end if;
    select min(s.id) into v_first from pass as s where s.snapshot is not null;
    raise exception using errcode = 'OD030',
        message = case when v_pass.id is not null
                       then format('pass %s was made before the database was restored, or by an older odc', v_pass.id)
                       when p_pass_id is null then format('no pass from before %s is kept', _iso(p_at))
                       when p_pass_id between 1 and coalesce(v_first - 1, 0) then format('pass %s is no longer kept', p_pass_id)
                       else format('pass %s does not exist', p_pass_id) end,
        hint = coalesce((select format('Kept passes: %s (%s) to %s (%s).', v_first, _iso(f.at), l.id, _iso(l.at))
                           from pass as f, (select s.id, s.at from pass as s order by s.id desc limit 1) as l
                          where f.id = v_first), 'No pass is kept yet.');
end;
$$;
