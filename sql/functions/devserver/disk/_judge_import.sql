-- odc._judge_import: whether a disk of gpu-dev can be imported, for whom, and under which name.
-- If its owner has a disk with that name already, the name gets a number: main-2.
-- Arguments  p_found   as odcd.disks.gpu_dev returns it
--            p_owners  as request_import has it
--            p_before  the results of this import so far: their names are taken
-- Returns    the result: {"gpu_dev_user", "gpu_dev_disk", "user", "name", "outcome": import, present: it was imported
--            before, or skipped; "why", "note"}, and the facts that p_found has
create or replace function odc._judge_import(p_found jsonb, p_owners jsonb, p_before jsonb)
returns jsonb
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_there constant text := p_found ->> 'gpu_dev_user';
    v_label constant text := p_found ->> 'gpu_dev_disk';
    v_from  constant text := p_found ->> 'cloud_id';
    v_owner constant text := coalesce(p_owners ->> v_there, v_there);
    v_gib   constant integer := (p_found ->> 'size_gib')::integer;
    v_name  text;
    v_uid   integer;
    v_known record;
    v_state text := 'skipped';
    v_why   text := p_found ->> 'skip';
begin
    select d.name, d.user_name, d.deleted_at, d.purge_at, case when s.adopted then s.cloud_id else s.source end as origin into v_known
      from disk as d
      join disk_snapshot as s on s.disk_id = d.id and s.source is not null
     where (d.imported_user, d.imported_name) = (v_there, v_label) and d.deleted_at is null
        or s.cloud_id = v_from and s.adopted
     order by d.deleted_at is not null, s.id desc limit 1;
    if v_known.deleted_at is not null then
        v_why := format('it was imported as disk "%s" of %s, which was deleted; its snapshots are kept until %s',
                        v_known.name, v_known.user_name, _iso(v_known.purge_at));
    elsif v_known.name is not null then
        v_state := 'present';
        v_why := case when v_from = v_known.origin then 'it was imported before'
                      else format('it was imported before, and gpu-dev has changed it since: %s is newer', coalesce(v_from, 'a snapshot')) end;
    elsif v_why is not null then
        null;
    elsif p_found ->> 'server' is not null and not exists (select from server as s where s.id::text = p_found ->> 'server') then
        v_why := format('another odc has imported %s', v_from);
    elsif v_label !~ '^[A-Za-z0-9_-]{1,50}$' or v_label = 'none' then
        v_why := 'odc has no such names; rename it in gpu-dev: 1 to 50 letters, digits, - and _';
    elsif v_gib > 16384 then
        v_why := format('it has %s GiB, and a disk of odc has at most 16384', v_gib);
    else
        begin
            v_uid := _disk_owner('{"operator": true}', v_owner);
            v_state := 'import';
        exception when sqlstate 'OD027' then
            v_why := format('user "%s" is unknown to odc: name the owner with --user %s=NAME', v_owner, v_there);
        end;
    end if;
    if v_state = 'import' then
        select n.name into v_name
          from (select v_label as name, 1 as at union all select format('%s-%s', left(v_label, 46), i), i from generate_series(2, 999) as i) as n
         where not exists (select from disk as d where d.uid = v_uid and d.name = n.name and d.deleted_at is null)
           and not exists (select from jsonb_array_elements(p_before) as b
                            where b ->> 'outcome' in ('import', 'imported') and (b ->> 'user', b ->> 'name') = (v_owner, n.name))
         order by n.at limit 1;
    end if;
    return jsonb_build_object(
        'gpu_dev_user', v_there, 'gpu_dev_disk', v_label, 'kind', p_found -> 'kind', 'cloud_id', v_from, 'size_gib', v_gib,
        'snapshot_count', p_found -> 'snapshot_count', 'last_used_at', p_found -> 'last_used_at', 'kms_key', p_found -> 'kms_key',
        'user', case v_state when 'present' then v_known.user_name else v_owner end,
        'name', case v_state when 'present' then v_known.name when 'import' then v_name end,
        'outcome', v_state, 'why', v_why, 'note', p_found -> 'note');
end;
$$;
