-- Jupyter Lab in dev servers: its token, and what became of it.

-- Made with the host's key, and gone with it. A box that was there before has none, and cannot have Jupyter.
alter table box_key add column jupyter_token text check (jupyter_token ~ '^[0-9a-f]{64}$');
drop function if exists keep_box_key(bigint, bigint, text, text, text, text, timestamptz);
drop function if exists enter_reservation(jsonb, bigint, integer);

-- What was last done about it in a box. Whether it is wanted is reservation.ask -> 'jupyter'.
create table box_jupyter (
    job_id  bigint primary key,
    attempt integer not null,
    running boolean not null,
    at      timestamptz not null,
    error   text                            -- why it is not as it was to be
);
