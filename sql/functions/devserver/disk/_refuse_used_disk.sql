-- odc._refuse_used_disk: refuse to change a disk that a job uses or waits for.
-- Arguments  p_what  the change, for the message: renamed
-- Raises     OD028 InUse
create or replace function odc._refuse_used_disk(p_disk disk, p_what text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_waits bigint;
begin
    if p_disk.holder is not null then
        raise exception using errcode = 'OD028',
            message = format('disk "%1$s" cannot be %3$s: reservation %2$s is using it', p_disk.name, p_disk.holder, p_what),
            hint = format('`odcctl cancel %s` ends the reservation; the disk is free once its snapshot has begun.', p_disk.holder);
    end if;
    select min(p.job_id) into v_waits from reservation as v join pending as p on p.job_id = v.job_id where v.disk_id = p_disk.id;
    if v_waits is not null then
        raise exception using errcode = 'OD028',
            message = format('disk "%2$s" cannot be %3$s: reservation %1$s is waiting for it', v_waits, p_disk.name, p_what),
            hint = format('`odcctl cancel %s` cancels the reservation.', v_waits);
    end if;
end;
$$;
