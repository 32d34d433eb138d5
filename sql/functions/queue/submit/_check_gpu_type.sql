-- odc._check_gpu_type: refuse an unknown GPU type.
-- Raises     OD005 UnknownGpuType
create or replace function odc._check_gpu_type(p_gpu_type text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if not exists (select from gpu_type as t where t.name = p_gpu_type) then
        raise exception using errcode = 'OD005',
            message = format('GPU type "%s" does not exist', p_gpu_type),
            hint = format('GPU types: %s.', _types_present());
    end if;
end;
$$;
