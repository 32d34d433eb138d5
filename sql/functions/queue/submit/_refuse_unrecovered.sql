-- odc._refuse_unrecovered: refuse to write while no leader has prepared a PostgreSQL that was promoted or restored. It may
-- assign ids again that were used before; the next leader skips them.
-- Raises     OD040 DatabaseBusy
create or replace function odc._refuse_unrecovered()
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if exists (select from server as s, _find_lineage() as l
                where s.system_id is not null and (s.system_id, s.timeline) is distinct from (l.system_id, l.timeline)) then
        raise exception using errcode = 'OD040',
            message = 'odc is not ready yet after PostgreSQL was promoted or restored',
            hint = 'Send it again in a few seconds, with the same idempotency key.';
    end if;
end;
$$;
