-- odc._judge_import: whether a disk of gpu-dev can be imported, for whom, and under which name.
-- If its owner has a disk with that name already, the name gets a number: main-2.
-- Arguments  p_found   as odcd.disks.gpu_dev returns it
--            p_owner   the owner here; p_uid: null: unknown
--            p_taken   owner/name of disks that this list has imported so far, and that have no row yet
-- Returns    the result: {"gpu_dev_user", "gpu_dev_disk", "user", "name", "outcome": import, present: it was imported
--            before, or skipped; "why", "note"}, and the facts that p_found has
create or replace function odc._judge_import(p_found jsonb, p_owner text, p_uid integer, p_taken text[])
returns jsonb
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_there constant text := p_found ->> 'gpu_dev_user';
    v_label constant text := p_found ->> 'gpu_dev_disk';
    v_from  constant text := p_found ->> 'cloud_id';
    v_gib   constant integer := (p_found ->> 'size_gib')::integer;
    v_name  text;
    v_taken text[];
    v_known record;
    v_state text := 'skipped';
    v_why   text := p_found ->> 'skip';
begin
    select d.name, d.user_name, d.deleted_at, d.purge_at, case when s.adopted then s.cloud_id else s.source end as origin into v_known
      from (select d.id from disk as d where (d.imported_user, d.imported_name) = (v_there, v_label) and d.deleted_at is null
             union select l.disk_id from disk_snapshot as l where l.cloud_id = v_from and l.adopted) as k
      join disk as d on d.id = k.id
      join disk_snapshot as s on s.disk_id = d.id and s.source is not null
     order by d.deleted_at is not null, s.id desc limit 1;
    if v_known.deleted_at is not null then
        v_why := format('it was imported as disk "%s" of %s, which was deleted; its snapshots are kept until %s',
                        v_known.name, v_known.user_name, _iso(v_known.purge_at));
    elsif v_known.name is not null then
        v_state := 'present';
        v_why := 'it was imported before' || case when v_from <> v_known.origin
                                                  then format(', and gpu-dev has changed it since: %s is newer', v_from) else '' end;
    elsif v_why is not null then
        null;
    elsif p_found ->> 'server' is not null and not exists (select from server as s where s.id::text = p_found ->> 'server') then
        v_why := format('another odc has imported %s', v_from);
    elsif v_label !~ '^[A-Za-z0-9_-]{1,50}$' or v_label = 'none' then
        v_why := 'odc has no such names; rename it in gpu-dev: 1 to 50 letters, digits, - and _';
    elsif v_gib > 16384 then
        v_why := format('it has %s GiB, and a disk of odc has at most 16384', v_gib);
    elsif p_uid is null then
        v_why := format('user "%s" is unknown to odc: name the owner with --user %s=NAME', p_owner, v_there);
    else
        v_state := 'import';
    end if;
    if v_state = 'import' then
        v_taken := array(select d.name from disk as d where d.uid = p_uid and d.deleted_at is null)
                   || array(select substr(t, length(p_owner) + 2) from unnest(p_taken) as t where starts_with(t, p_owner || '/'));
        v_name := v_label;
        if v_label = any (v_taken) then
            select n.name into v_name
              from (select i, format('%s-%s', left(v_label, 46), i) as name from generate_series(2, 999) as i) as n
             where n.name <> all (v_taken) order by n.i limit 1;
        end if;
    end if;
    return jsonb_build_object(
        'gpu_dev_user', v_there, 'gpu_dev_disk', v_label, 'kind', p_found -> 'kind', 'cloud_id', v_from, 'size_gib', v_gib,
        'snapshot_count', p_found -> 'snapshot_count', 'last_used_at', p_found -> 'last_used_at', 'kms_key', p_found -> 'kms_key',
        'user', case v_state when 'present' then v_known.user_name else p_owner end,
        'name', case v_state when 'present' then v_known.name when 'import' then v_name end,
        'outcome', v_state, 'why', v_why, 'note', p_found -> 'note');
end;
$$;
