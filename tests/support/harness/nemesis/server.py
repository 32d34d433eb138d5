"""The PostgreSQL under test, which records the author and commit time of each write."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import psutil

from odcd.home.postgres import EmbeddedPostgres
from tests.support.harness.database import MAJOR, Sql

RECORD = """
create schema nemesis;

-- Every write to what only the leader may change, and every end of a job.
create table nemesis.write (
    n       bigint generated always as identity primary key,
    xid     xid8 not null default pg_current_xact_id(),
    client  inet default inet_client_addr(),
    what    text not null,
    term    bigint,
    job_id  bigint,
    attempt integer,
    node_id integer,
    mask    bigint
);

create function nemesis.on_pass() returns trigger language plpgsql as $$ begin
    insert into nemesis.write (what, term) values ('pass', new.term);
    return null;
end $$;
create function nemesis.on_allocation() returns trigger language plpgsql as $$ begin
    if tg_op <> 'INSERT' then
        insert into nemesis.write (what, job_id, node_id, mask)
        values ('free', old.job_id, old.node_id, old.gpu_mask);
    end if;
    if tg_op <> 'DELETE' then
        insert into nemesis.write (what, job_id, node_id, mask)
        values ('allocate', new.job_id, new.node_id, new.gpu_mask);
    end if;
    return null;
end $$;
create function nemesis.on_attempt() returns trigger language plpgsql as $$ begin
    insert into nemesis.write (what, job_id, attempt) values ('attempt', new.job_id, new.attempt);
    return null;
end $$;
create function nemesis.on_end() returns trigger language plpgsql as $$ begin
    insert into nemesis.write (what, job_id) values ('end', new.id);
    return null;
end $$;

create trigger nemesis after insert on odc.pass
    for each row execute function nemesis.on_pass();
create trigger nemesis after insert or delete or update of gpu_mask, node_id on odc.allocation
    for each row execute function nemesis.on_allocation();
create trigger nemesis after insert on odc.attempt
    for each row execute function nemesis.on_attempt();
create trigger nemesis after update of state on odc.job
    for each row when (new.state is not null) execute function nemesis.on_end();
create trigger nemesis_new after insert on odc.job
    for each row when (new.state is not null) execute function nemesis.on_end();
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Server:
    """In a home that has the schema already. It listens on the loopback only."""

    def __init__(self, home: Path) -> None:
        self._postgres = EmbeddedPostgres(home, MAJOR, durable=False)
        self._stopped: list[psutil.Process] = []
        self.port = free_port()
        data = self._postgres.data
        logins = data / "nemesis_hba.conf"
        logins.write_text("local all all peer map=odc\nhost all all 127.0.0.0/8 trust\n")
        if os.geteuid() == 0:
            os.chown(logins, self._postgres.owner.uid, self._postgres.owner.gid)
        logins.chmod(0o600)
        with (data / "postgresql.conf").open("a") as config:
            # Committed data survives the death of every process, though not of the machine.
            config.write(
                f"\nlisten_addresses = '127.0.0.1'\nport = {self.port}\nhba_file = '{logins}'\n"
                "synchronous_commit = on\ntrack_commit_timestamp = on\n"
            )

    def dsn(self, port: int | None = None) -> str:
        """Through a link, or directly."""
        return f"postgresql://odc@127.0.0.1:{port or self.port}/odc"

    def start(self) -> None:
        self._postgres.start()

    def record(self) -> None:
        with self.sql() as sql:
            sql.execute(RECORD)

    def crash(self) -> None:
        self._postgres.stop("immediate")

    def freeze(self) -> None:
        """Stop every process of the server, like a virtual machine that is being moved."""
        running = self._postgres.postmaster()
        assert running is not None
        postmaster = psutil.Process(running.pid)
        # First, so that it starts no other.
        os.kill(postmaster.pid, signal.SIGSTOP)
        self._stopped = [*postmaster.children(recursive=True), postmaster]
        for process in self._stopped:
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def thaw(self) -> None:
        for process in self._stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()
        self._stopped = []

    def sql(self) -> Sql:
        return Sql(self.dsn())

    def close(self) -> None:
        self.thaw()
        self._postgres.stop("immediate")
