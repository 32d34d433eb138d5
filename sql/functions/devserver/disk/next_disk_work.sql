-- odc.next_disk_work: when the next disk work is due; null: never.
create or replace function odc.next_disk_work()
returns timestamptz
language sql stable as $$
    select least((select min(due_at) from odc.disk_volume where due_at is not null),
                 (select min(due_at) from odc.disk_snapshot where due_at is not null),
                 (select min(due_at) from odc.shared_storage where due_at is not null),
                 (select min(due_at) from odc.disk_import where due_at is not null))
$$;
